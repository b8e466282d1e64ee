# SPDX-License-Identifier: Apache-2.0
"""Answers of commands as table, JSON and CSV; and `compare` from end to end on made results."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any, TextIO

import pytest

from analysis.terminal import Style
from testbed import cli
from testbed.commands.output import render
from tests import lab

ROWS: list[dict[str, Any]] = [
    {"metric": "utilization", "where": {"cca": "reno"}, "outcome": "agrees", "measured": 0.87654321},
    {"metric": "=cmd()", "where": {}, "outcome": "disagrees", "measured": None},
]


def test_a_table_fits_the_width_and_aligns_numbers_to_the_right() -> None:
    text = render([{"name": "a" * 90, "value": 1.5}, {"name": "b", "value": 22.25}], "table", Style(40, False))
    assert max(len(line) for line in text.splitlines()) <= 40
    assert [line[-5:] for line in text.splitlines()] == ["value", "  1.5", "22.25"]


def test_colour_marks_outcomes_only_where_it_is_wanted() -> None:
    assert "\033[32magrees" in render(ROWS, "table", Style(100, True))
    assert "\033" not in render(ROWS, "table", Style(100, False))


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert "\033" not in render([{"name": "\033[2Jx"}], "table", Style(100, False))


def test_csv_keeps_numbers_and_disarms_formulas() -> None:
    header, first, second = csv.reader(io.StringIO(render(ROWS, "csv")))
    assert header == ["metric", "where", "outcome", "measured"]
    assert first == ["utilization", "cca=reno", "agrees", "0.87654321"]
    assert second[0] == "'=cmd()"


def test_no_rows_are_an_empty_list_in_json() -> None:
    assert json.loads(render([], "json")) == []
    assert render([], "table") == ""


@pytest.mark.parametrize("what", ["experiments", "algorithms", "topologies", "hosts", "metrics"])
def test_every_list_is_there_as_json(what: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list", what, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows and all(isinstance(value, str) for row in rows for value in row.values())


def test_check_answers_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "experiments/quickstart.yml", "--format", "json"]) == 0
    assert isinstance(json.loads(capsys.readouterr().out), list)


EXPERIMENT = """
warpbed: 1
name: papers
title: A paper's numbers
duration: 2s
topology: {name: dumbbell, params: {rate: 50mbit}}
flows: [{cca: reno, from: s1, to: d1}]
sweep: {parameters: {cca: flows.*.cca}, factorial: {cca: [reno, cubic]}}
published:
  - {source: Table 1, metric: utilization, %s, values: [{where: {%s: reno}, value: 1}, {where: {cca: cubic}, value: 0.9}]}
"""


@pytest.mark.parametrize(
    ("claim", "name", "line"),
    [
        ("tolerance: 5%, unit: packets", "cca", "published.0.unit: utilization is in '1', not 'packets'"),
        ("tolerance: 5%", "kind", "published.0.values.0: 'kind' is not a parameter of the sweep"),
        ("unit: '1'", "cca", "need a tolerance"),
    ],
)
def test_a_published_table_that_cannot_be_meant_is_refused_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], claim: str, name: str, line: str
) -> None:
    file = tmp_path / "papers.yml"
    file.write_text(EXPERIMENT % (claim, name))
    assert cli.main(["check", str(file)]) == 2
    assert line in capsys.readouterr().err


def _played(*_: object, output: TextIO, **__: object) -> int:
    print("TASK", file=output)
    return 0


@pytest.mark.parametrize("kind", ["json", "csv"])
def test_execute_and_run_give_their_runs_to_programs_and_say_the_rest_aside(
    small: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = lab.write(tmp_path, lab.SMALL)
    monkeypatch.setattr(
        "signal.signal", lambda *_: None
    )  # handlers of the command, which here is no process of its own
    # what is there already needs no guest and no play, which has its own tests
    monkeypatch.setattr("testbed.ansible.play", _played)
    for command, message in (("execute", "nothing to do"), ("run", "nothing to do"), ("run", "TASK")):
        if message == "TASK":
            monkeypatch.setattr("testbed.commands.run.ready_hosts", lambda *_: None)
        assert cli.main([command, str(file), "--results", str(small.parent), "--format", kind]) == 0
        answer = capsys.readouterr()
        rows = json.loads(answer.out) if kind == "json" else list(csv.DictReader(io.StringIO(answer.out)))
        assert [row["run"] for row in rows] == [path.parent.name for path in small.glob("*/run.json")]
        assert message in answer.err and ("TASK" in answer.err) == (message == "TASK")


def test_counts_of_a_capture_are_also_json_and_csv(
    small: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    capture = str(min(small.glob("*/**/*.pcap*")))
    assert cli.main(["collect", capture, "--out", str(tmp_path / "a"), "--format", "json"]) == 0
    counts = json.loads(capfd.readouterr().out)
    assert counts["packets"] > 0
    assert counts["out"] == str(tmp_path / "a")
    assert cli.main(["collect", capture, "--out", str(tmp_path / "b"), "--format", "csv"]) == 0
    (row,) = csv.DictReader(io.StringIO(capfd.readouterr().out))
    assert int(row["packets"]) == counts["packets"]
