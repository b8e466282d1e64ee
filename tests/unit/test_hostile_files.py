# SPDX-License-Identifier: Apache-2.0
"""Files from strangers: refused in one clear message, before any work is done, and without harm to the terminal."""

from __future__ import annotations

import copy
import csv
import dataclasses
import io
import json
import math
import time
from pathlib import Path
from typing import Any

import pytest

from analysis import integrity, table
from analysis.report import write_report
from analysis.results import load_experiment, load_run
from analysis.terminal import Style
from base.errors import SpecError, UsageError
from benchmarks.make_results import Case, make_results
from store import actions, questions
from store import folder as store_folder
from testbed import ansible, experiments
from testbed.experiments import MAX_RUNS, MOST_PARTS, prepare
from testbed.finish import finish
from testbed.runs import count_runs, expand
from tests import lab


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(SpecError) as error:
        prepare(lab.write(folder, text))
    return str(error.value)


@pytest.mark.parametrize("levels", [31, 300, 5000])
@pytest.mark.parametrize("form", ["flow", "block"])
def test_deep_nesting_is_refused_before_it_is_read(tmp_path: Path, levels: int, form: str) -> None:
    deep = "[" * levels + "]" * levels if form == "flow" else "- " * levels + "x"
    begun = time.process_time()
    assert "more than 30 levels" in refusal(tmp_path, lab.SMALL + f"metrics:\n  {deep}\n")
    assert time.process_time() - begun < 20


def test_brackets_in_texts_are_no_levels(tmp_path: Path) -> None:
    prepare(lab.write(tmp_path, lab.SMALL.replace("One short flow", '"' + "[{" * 60 + '"')))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("duration: 5s", f"duration: {'9' * 400}s", "is not a time"),
        ("duration: 5s", "duration: 99999999h", "'99999999h': a time is at most 8784h"),
        ("duration: 5s", "duration: 800h", "longer than"),
        ("delay: 9ms", "delay: 99999999999999999999h", "a time is at most 8784h"),
        ("delay: 9ms", "delay: 2h", "topology.params.delay: 7200 s; at most 3600 s"),
        ("rate: 20mbit", "rate: 99999999999999999999gbit", "a rate is at most 10000gbit"),
        ("buffer: 40p", "buffer: 99999999999999999999GiB", "a buffer is at most 1000000000p, or 4GB"),
        ("buffer: 40p", "buffer: 1000000001p", "a buffer is at most 1000000000p, or 4GB"),
        ("to: d1}", "to: d1, size: 99999999999999GB}", "a size is at most 1000000GB"),
        ("to: d1}", "to: d1}\nsamplers: {queues: 1ns}", "samples are taken each 100us at most"),
        ("to: d1}", "to: d1}\nsamplers: {sockets: 99us}", "samples are taken each 100us at most"),
        ("duration: 5s", "duration: 720h\nsamplers: {sockets: 50ms}", "samplers.sockets: 50ms: a row each 0.05 s of"),
        (
            "to: d1}",
            "to: d1, parallel: 2}\nsamplers: {queues: 1s, sockets: off}",
            "duration: 720h: a row each 0.1 s of",
        ),
        ("duration: 5s", f"duration: 5s\nseeds: [0x{'f' * 20000}]", "whole number of"),
        ("cca: cubic", 'cca: {name: medley, params: {init_cwnd: "1 timeout_cwnd=9"}}', "without blanks"),
        ("title: One short flow", 'title: "One \\uD800 flow"', "half a character"),
        ("title: One short flow", 'title: One\n"\\uDFFFx": 1', "half a character"),
    ],
)
def test_values_out_of_all_bounds_are_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = lab.SMALL.replace("duration: 5s", "duration: 720h") if message.startswith("duration: 720h") else lab.SMALL
    said = refusal(tmp_path, text.replace(old, new))
    assert message in said and said.startswith(f"{tmp_path / 'experiment.yml'}:")


def test_a_list_in_the_place_of_a_key_is_refused(tmp_path: Path) -> None:
    assert "a key is no single value" in refusal(tmp_path, lab.SMALL + "? [[a]]\n: c\n")


def test_a_sweep_of_too_many_runs_is_counted_and_not_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def made(*_: object) -> None:
        pytest.fail("runs are made before they are counted")

    monkeypatch.setattr(experiments, "expand", made)
    values = ", ".join(f"{number}p" for number in range(1, 41))
    names = "abcdefgh"
    sweep = "sweep:\n  parameters: {" + ", ".join(f"{name}: topology.params.buffer" for name in names) + "}\n"
    sweep += "  factorial: {" + ", ".join(f"{name}: [{values}]" for name in names) + "}\n"
    begun = time.process_time()
    assert f"{40**8} runs; at most {MAX_RUNS}" in refusal(tmp_path, lab.SMALL + sweep)
    assert time.process_time() - begun < 20


FLOWS = "flows:\n  - {name: f1, cca: cubic, from: s1, to: d1}\n"
MANY_FLOWS = "flows:\n" + "".join(f"  - {{name: f{i}, cca: reno, from: s1, to: d1}}\n" for i in range(900))


@pytest.mark.parametrize(
    ("flows", "place", "values", "seeds"),
    [
        (FLOWS, "topology.params.buffer", [f"{number}p" for number in range(1, 12_000)], ""),
        (MANY_FLOWS, "flows.*.start", [f"{number}ms" for number in range(1000)], ""),
        (
            FLOWS
            + "traffic:\n  - {kind: cbr, rate: 1mbit, from: s1, to: d1, on: exponential(500us), off: exponential(500us)}\n",
            "title",
            [f"t{number}" for number in range(100)],
            "repeats: 1000\n",
        ),
    ],
    ids=["many cells", "many values in each", "many draws"],
)
def test_a_sweep_whose_plans_would_take_minutes_is_refused_in_seconds(
    tmp_path: Path, flows: str, place: str, values: list[str], seeds: str
) -> None:
    sweep = f"sweep:\n  parameters: {{x: {place}}}\n  factorial: {{x: [{', '.join(values)}]}}\n{seeds}"
    begun = time.process_time()
    said = refusal(tmp_path, lab.SMALL.replace(FLOWS, flows) + sweep)
    assert ": sweep: " in said and f"at most {MOST_PARTS}: sweep fewer values" in said
    assert time.process_time() - begun < 20


def test_runs_of_a_sweep_share_what_it_does_not_change(tmp_path: Path) -> None:
    text = lab.SMALL + "claims: [{source: A, metric: utilization, bounds: {min: 0.1}}]\n"
    sweep = "sweep:\n  parameters: {b: topology.params.buffer}\n  factorial: {b: [1p, 2p]}\n"
    first, second = (run.experiment for run in prepare(lab.write(tmp_path, text + sweep)).runs)
    assert first.flows[0] is second.flows[0] and first.claims[0] is second.claims[0]
    assert first.topology.params["buffer"] != second.topology.params["buffer"] and first.sweep is None
    alone = prepare(lab.write(tmp_path, text.replace("40p", "2p"))).runs[0]
    assert second.model_dump() == alone.experiment.model_dump()


@pytest.mark.parametrize(
    "sweep",
    [
        "",
        "repeats: 3\n",
        "sweep:\n  parameters: {b: topology.params.buffer}\n  factorial: {b: [1p, 2p]}\n  list: [{b: 9p}]\nrepeats: 2\n",
        "sweep:\n  parameters: {b: topology.params.buffer}\n  list: [{b: 9p}, {b: 7p}]\n",
    ],
)
def test_runs_are_counted_as_they_are_made(tmp_path: Path, sweep: str) -> None:
    prepared = prepare(lab.write(tmp_path, lab.SMALL + sweep))
    assert count_runs(prepared.experiment) == len(expand(prepared.document, prepared.experiment))


def test_escape_sequences_of_a_file_do_not_reach_the_terminal(tmp_path: Path) -> None:
    message = refusal(tmp_path, lab.SMALL + '"\\e]0;PWNED\\a\\e[2J": 1\n')
    assert "PWNED" in message and message.isprintable()


def test_a_run_id_fits_a_file_name_and_is_never_taken_for_a_failed_attempt(tmp_path: Path) -> None:
    names = [f"p{number}" for number in range(30)]
    sweep = "sweep:\n  parameters: {" + ", ".join(f"{name}: name" for name in names) + "}\n"
    sweep += "  list: [{" + ", ".join(f"{name}: {'v' * 24}" for name in names) + "}]\n"
    long = prepare(lab.write(tmp_path, lab.SMALL + sweep)).runs[0].run_id("virtual", "k")
    assert len(long) < 200
    sweep = "sweep:\n  parameters: {t: title}\n  list: [{t: x.failed}]\n"
    assert ".failed-" not in prepare(lab.write(tmp_path, lab.SMALL + sweep)).runs[0].run_id("virtual", "k")


@pytest.mark.parametrize("path", ['{{ lookup("pipe", "id") }}', "{% for x in y %}", "{# #}"])
def test_a_path_is_never_a_template(path: str) -> None:
    with pytest.raises(UsageError, match="which Ansible would execute"):
        ansible.play("collect.yml", {"results": f"/x/{path}"})


GOOD: dict[str, Any] = {
    "format": 1, "experiment": "x", "run": "r1", "seed": 1, "params": {"p": "1"}, "host": "virtual",
    "status": "complete", "error": None,
    "verdict": {"value": "valid", "reasons": [{"rule": "a", "severity": "info", "message": "m"}]},
    "metrics": {"utilization": 0.5, "flows": [{"flow": "f", "cca": "reno", "goodput_mbps": 1.0}]},
    "spec": {
        "title": "t", "question": "", "duration": "5s", "topology": {"name": "dumbbell"},
        "flows": [{"name": "f", "cca": {"name": "reno"}, "from": "a", "to": "b"}],
        "expectations": [{"metric": "utilization", "min": 0.1, "where": {"p": "1"}}], "published": [],
    },
    "environment": {"topology": {"nodes": [{"name": "a", "kind": "host"}], "links": []}},
    "timing": {"virtual_s": 5, "wall_s": 1.0},
}  # fmt: skip
HUGE = 10**400


def mutated(place: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    document = copy.deepcopy(GOOD)
    node: Any = document
    for part in place[:-1]:
        node = node[part]
    node[place[-1]] = value
    return document


MUTATIONS = [
    *((("seed",), value) for value in ([1], 1.5, "a", HUGE, True)),
    *((("verdict", "reasons"), value) for value in (5, ["a"])),
    *((("metrics", "flows"), value) for value in (5, ["a"], [None])),
    *((("metrics", "utilization"), value) for value in (math.nan, math.inf, HUGE)),
    *((("timing", "virtual_s"), value) for value in ("9", math.nan)),
    *((("timing", "wall_s"), value) for value in (HUGE, [1])),
    *((("params", "p"), value) for value in (math.nan, HUGE, "1" * 400, [1, 2], {"a": 1})),
    *(
        (("spec", "expectations"), value)
        for value in (["a"], [{"metric": "utilization", "min": 1, "where": {"p": [1]}}])
    ),
    (("spec", "flows"), "x"),
    (("environment", "topology"), {"nodes": 5, "links": [{"rate_bps": math.nan}]}),
    (("experiment",), "\ud800"),
]


@pytest.mark.parametrize(("place", "value"), MUTATIONS, ids=str)
def test_one_damaged_run_does_not_end_the_report_of_the_others(tmp_path: Path, place: Any, value: Any) -> None:
    folder = tmp_path / "x"
    for name, document in (("r1", GOOD), ("r2", mutated(place, value))):
        (folder / name).mkdir(parents=True)
        (folder / name / "run.json").write_text(json.dumps(document))
    runs = load_experiment(folder)
    assert load_run(folder / "r1").complete
    write_report(folder)
    table.as_csv(runs)
    table.as_json(runs)
    table.render(runs, Style(100, False))


def test_repeats_that_no_file_may_have_do_not_end_the_report(tmp_path: Path) -> None:
    """The first run's experiment speaks for all, so that it is the only one here."""
    document = mutated(("spec",), {**GOOD["spec"], "claims": [], "repeats": {"a": {"b": 1}}})
    (tmp_path / "x/r1").mkdir(parents=True)
    (tmp_path / "x/r1/run.json").write_text(json.dumps(document))
    assert "Field required" in write_report(tmp_path / "x").read_text()


@pytest.mark.parametrize(
    "facts",
    [math.nan, "{'start_realtime_ns': 1}", [1], *({"start_realtime_ns": odd} for odd in ("x", math.nan, -1, 1 << 63))],
    ids=str,
)
def test_the_store_takes_a_run_whatever_its_facts_are(tmp_path: Path, facts: Any) -> None:
    [run] = make_results(tmp_path, [Case("reno", 50, 1)], duration_s=1.0).glob("*/run.json")
    document = {**json.loads(run.read_text()), "facts": facts, "timing": {"virtual_s": -1.0}}
    document.pop(integrity.KEY, None)
    run.write_text(json.dumps(document))
    assert 0.5 < store_folder.read(run.parent).row.duration_s < 2, "the records say it"


@pytest.mark.parametrize(
    "text", ['{"format":1,"spec":' + "[" * 100_000 + "]" * 100_000 + "}", '{"format":1,"seed":' + "9" * 5000 + "}"]
)
def test_a_run_json_out_of_all_bounds_is_unreadable(tmp_path: Path, text: str) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "r/run.json").write_text(text)
    assert load_run(tmp_path / "r").status == "unreadable"


@pytest.mark.parametrize("duration_s", [1e12, math.inf, math.nan, -1.0])
def test_a_plan_of_unbounded_time_is_refused_before_memory_is_taken(tmp_path: Path, duration_s: float) -> None:
    plan = dataclasses.replace(prepare(lab.write(tmp_path, lab.SMALL)).plans[0], duration_s=duration_s)
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw/plan.json").write_text(plan.to_json())
    (tmp_path / "raw/guest.json").write_text("{}")
    (tmp_path / "run.json").write_text(json.dumps({"format": 1, "spec": {}}))
    with pytest.raises(UsageError, match=r"raw/plan\.json: .* intervals, at most 3e\+07 fit in memory"):
        finish(tmp_path)


def test_a_play_leaves_no_folder_of_ours_on_other_machines() -> None:
    """TMPDIR names a folder of this machine; whoever has none of that name would get one at each call, and keep it."""
    inventories = sorted((lab.ROOT / "inventory").glob("*/hosts.yml"))
    assert len(inventories) == 5
    for inventory in inventories:
        text = inventory.read_text()
        assert text.count("ansible_remote_tmp:") == text.count("ansible_connection: local") > 0, inventory


def test_no_cell_of_a_csv_file_is_a_formula(tmp_path: Path) -> None:
    document = {**GOOD, "experiment": "=cmd", "params": {"=HYPERLINK(1)": "=1"}, "verdict": {"value": "=3+3"}}
    document["metrics"] = {"utilization": "=4+4"}
    (tmp_path / "x/r").mkdir(parents=True)
    (tmp_path / "x/r/run.json").write_text(json.dumps(document))
    cells = [cell for row in csv.reader(io.StringIO(table.as_csv(load_experiment(tmp_path / "x")))) for cell in row]
    assert "'=3+3" in cells
    assert [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))] == []


def test_no_cell_of_an_answer_from_the_store_is_a_formula(capsys: pytest.CaptureFixture[str]) -> None:
    actions._print(questions.Answer(("run", "=x"), (("=1+1", -5.0), ("@x", None))), "csv")
    assert capsys.readouterr().out == "run,'=x\n'=1+1,-5.0\n'@x,\n"
