# SPDX-License-Identifier: Apache-2.0
"""The terminal's table, JSON and CSV, and reading of result folders."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from analysis.errors import ResultsError
from analysis.metrics import REGISTRY
from analysis.metrics.absence import why
from analysis.results import Reason, Run, earlier_attempts, load_experiment, parse_run, quantity, show
from analysis.table import as_csv, as_json, number, render
from analysis.terminal import Style
from benchmarks.make_results import Case, make_results

PLAIN = Style(width=120, colour=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cases = [
        Case("reno", 50, 1),
        Case("reno", 250, 1, verdict="invalid", reasons=({"rule": "r", "severity": "invalid", "message": "why"},)),
        Case("cubic", 50, 1, kind="failed"),
        Case("cubic", 250, 1, kind="cut-off"),
    ]
    return make_results(tmp_path_factory.mktemp("results"), cases, duration_s=3.0)


def test_every_run_has_a_line_and_every_problem_its_words(folder: Path) -> None:
    text = render(load_experiment(folder), PLAIN)
    lines = text.splitlines()
    assert [line.split()[3] for line in lines[1:4]] == ["failed", "valid", "invalid"]
    assert "unreadable" in lines[4]
    assert "reno-250p-s1-00000001: invalid r: why" in text
    assert "flow f1: iperf3 ended with 1" in text
    assert "no run.json" in text


def test_a_number_that_is_missing_has_its_reason_below() -> None:
    """One line for each reason: the record that nothing made, with the way to have it; of a failed run none, its error says it."""
    known = {"utilization": 0.9, "jain_index": 1.0, "goodput_mbps": 8.0, "queue_max_packets": 4, "queue_drops": 0}

    def run(name: str, sources: dict[str, dict[str, str]], **metrics: float | None) -> Run:
        return Run(
            "e",
            name,
            Path(name),
            1,
            {"cca": name},
            status="complete",
            verdict="valid",
            metrics={**known, **metrics},
            sources=sources,
        )

    heard = {"f1": {"delivered": "application"}, "f2": {"delivered": "tcp_info", "rtt": "tcp_info, smoothed"}}
    seen = {"f1": {"delivered": "tcp_probe", "rtt": "tcp_probe, smoothed"}}
    runs = [
        run("a", heard, queue_mean_packets=1.5),
        run("b", seen, queue_mean_packets=None, rtt_mean_ms=40.0),
        Run("e", "c", Path("c"), 1, {"cca": "c"}, status="failed", error="it broke"),
    ]
    lines = render(runs, Style(400, False)).splitlines()
    below = [line for line in lines if line.startswith("–")]
    assert len(below) == 2
    assert below[0].startswith(
        "– queue mean: needs samples of the bottleneck's queue (queues); write samplers.queues: 10ms"
    )
    assert below[1].startswith(
        "– RTT ms: needs round-trip times (capture at the sender, else tcp_probe, else tcp_info), and no record has that of f1; write"
    )
    complete = render([run("a", seen, queue_mean_packets=1.0, rtt_mean_ms=2.0)], Style(400, False))
    assert "needs" not in complete


def test_a_metric_without_a_value_by_its_definition_says_that() -> None:
    sources = {"f1": {"sent": "capture at the sender", "delivered": "capture at the receiver"}}
    assert "null while one of them is not" in why("completion_s", sources)
    assert why("completion_s", {"f1": {}}).startswith("needs completion of a size (capture at the sender)")
    assert why("output_gap_ms", sources).startswith("needs results of traffic")
    assert all(why(name, sources) and why(name, {}) for name in REGISTRY)


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_no_line_is_wider_than_the_terminal(folder: Path, width: int) -> None:
    assert max(len(line) for line in render(load_experiment(folder), Style(width, False)).splitlines()) <= width


def test_colour_only_where_it_is_wanted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = load_experiment(folder)
    assert "\033" not in render(runs, PLAIN)
    assert "\033[31mfailed" in render(runs, Style(120, True))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert not Style.of_terminal().colour


def test_control_characters_do_not_reach_the_terminal() -> None:
    run = Run("e", "r", Path("r"), 1, {"cca": "\033[2Jreno"}, status="failed", error="bad\033]0;x\007")
    assert "\033" not in render([run], PLAIN)


def test_json_keeps_to_the_contract(folder: Path) -> None:
    rows = json.loads(as_json(load_experiment(folder)))
    assert len(rows) == 4
    assert all({"experiment", "run", "seed", "params", "verdict", "metrics"} <= set(row) for row in rows)
    assert {row["verdict"] for row in rows} == {"valid", "invalid", None}


def test_csv_has_one_row_per_run_and_no_formulas(folder: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv(load_experiment(folder)))))
    assert len(rows) == 4
    assert {row["param.cca"] for row in rows} >= {"reno", "cubic"}
    assert float(next(row["utilization"] for row in rows if row["verdict"] == "valid")) > 0
    formula = Run("e", "=1+1", Path("r"), 1, {"cca": "@x"})
    assert "'=1+1" in as_csv([formula])
    assert "'@x" in as_csv([formula])


def test_numbers_are_short() -> None:
    assert [number(value) for value in (None, 0, 0.0, 12, 0.98765, 12345.6, 0.00012)] == [
        "–",
        "0",
        "0",
        "12",
        "0.9877",
        "12346",
        "1.2e-04",
    ]


def test_an_empty_experiment_is_reported_as_empty(tmp_path: Path) -> None:
    assert render(load_experiment(tmp_path), PLAIN) == "no runs\n"
    with pytest.raises(ResultsError, match="no such folder"):
        load_experiment(tmp_path / "nothing")


def test_runs_are_ordered_by_quantity_not_by_text(tmp_path: Path) -> None:
    folder = make_results(tmp_path, [Case("reno", size, 1) for size in (250, 50, 1000)], duration_s=1.0)
    assert [run.params["buffer"] for run in load_experiment(folder)] == ["50p", "250p", "1000p"]


def test_given_names_choose_the_runs_and_their_order(tmp_path: Path) -> None:
    cases = [Case("reno", 50, 1), Case("cubic", 50, 1)]
    folder = make_results(tmp_path, cases, duration_s=1.0)
    runs = load_experiment(folder, [cases[0].name, "not-run-yet"])
    assert [(run.run, run.standing) for run in runs] == [(cases[0].name, "valid"), ("not-run-yet", "missing")]


def test_a_failed_attempt_stands_for_its_run_until_the_run_is_complete(tmp_path: Path) -> None:
    case = Case("reno", 50, 1)
    folder = make_results(tmp_path, [Case("reno", 50, 1, kind="failed")], duration_s=1.0)
    assert [(run.run, run.standing) for run in load_experiment(folder)] == [(case.name, "failed")]
    make_results(tmp_path, [case], duration_s=1.0)
    assert [(run.run, run.standing) for run in load_experiment(folder)] == [(case.name, "valid")]
    assert [run.path.name for run in earlier_attempts(folder)] == [f"{case.name}.failed-1"]


def test_bad_run_files_say_what_is_wrong() -> None:
    for text, message in (
        ("{", "not JSON"),
        ("[]", "not an object"),
        ('{"format": 2}', "result format 2"),
        ('{"format": 1, "metrics": 3}', "metrics holds int"),
    ):
        with pytest.raises(ResultsError, match=message):
            parse_run(text, Path("x"))
    run = parse_run(
        '{"format": 1, "verdict": null, "params": null, "metrics": null, "status": "complete"}', Path("e/r")
    )
    assert (run.experiment, run.run, run.standing, run.params) == ("e", "r", "no verdict", {})
    run = parse_run(
        '{"format": 1, "verdict": {"value": "suspect", "reasons": [{"rule": "a", "severity": "b", "message": "c"}]}}',
        Path("e/r"),
    )
    assert run.reasons == (Reason("a", "b", "c"),)


def test_quantities_and_words() -> None:
    assert [quantity(text) for text in ("50p", "48ms", "10mbit", "2%", "64KB", 3)] == [50, 0.048, 1e7, 0.02, 64e3, 3]
    assert [quantity(value) for value in ("reno", "5 apples", None, True, "")] == [None] * 5
    assert [show(value) for value in (None, True, 0.5, "a", {"b": 1})] == ["none", "yes", "0.5", "a", '{"b": 1}']
