# SPDX-License-Identifier: Apache-2.0
"""JUnit XML says what the exit code says, and a baseline tells means that have changed by more than their interval."""

from __future__ import annotations

import dataclasses
import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from analysis.results import load_experiment
from base.errors import UsageError
from base.paths import ROOT
from benchmarks.make_results import Case as Made
from benchmarks.make_results import make_results
from testbed import baseline, junit
from testbed.baseline import Mean
from testbed.cli import parser
from testbed.experiments import prepare
from testbed.junit import Case
from testbed.outcomes import outcomes
from tests import lab

CLAIMS = """\
guards:
  - {metric: utilization, min: 0.1}
  - {metric: utilization, min: 2}
claims:
  - {source: A, metric: utilization, where: {cca: cubic}, bounds: {min: 0.1}}
  - {source: B, metric: utilization, where: {cca: cubic}, bounds: {max: 0.1}}
  - {source: C, metric: utilization, where: {cca: cubic}, bounds: {max: 0.1}, differs: another kernel}
"""
SWEEP = "sweep:\n  parameters: {cca: flows.*.cca}\n  factorial: {cca: [cubic, reno]}\nrepeats: 2\n"


def test_a_case_fails_where_the_command_ends_with_1(tmp_path: Path) -> None:
    asked = prepare(lab.write(tmp_path, lab.SMALL + SWEEP + CLAIMS))
    cases = [Made(cca, 40, seed, params={"cca": cca}) for cca in ("cubic", "reno") for seed in (1, 2)]
    runs = load_experiment(make_results(tmp_path, cases, experiment="small", duration_s=4.0))
    decided = outcomes(runs, asked, tmp_path / "small")
    junit_cases = junit.of_outcomes(decided)
    by_group = {group: [case.outcome for case in junit_cases if case.group == group] for group in ("guards", "claims")}
    assert by_group["guards"] == ["passed", "failed"]
    assert by_group["claims"] == ["passed", "failed", "skipped"]
    assert decided.failed == any(case.outcome == "failed" for case in junit_cases)


def test_the_file_counts_and_escapes(tmp_path: Path) -> None:
    hostile = 'a<b> & "c" \x1b[31m \x00 \ud800'
    junit.write(
        tmp_path / "j.xml",
        "small",
        [Case("g", hostile, "failed", hostile), Case("g", "b", "skipped", "c"), Case("g", "d", "passed")],
    )
    suite = ET.parse(tmp_path / "j.xml").getroot()[0]
    assert dict(suite.attrib) == {"name": "small", "tests": "3", "failures": "1", "errors": "0", "skipped": "1"}
    assert [[child.tag for child in case] for case in suite] == [["failure"], ["skipped"], []]
    assert suite[0].get("name", "").startswith('a<b> & "c" ') and suite[0].get("classname") == "small.g"


def test_entries_of_theses_become_cases(tmp_path: Path) -> None:
    lab.inside(
        "reproduce", "ho2008-tab4.1", "ho2008-fig2.1", "--no-run", "--junit", tmp_path / "j.xml", "--results", tmp_path
    )
    suite = ET.parse(tmp_path / "j.xml").getroot()[0]
    assert [(case.get("classname"), [child.tag for child in case]) for case in suite] == [
        ("reproduction.ho2008", []),
        ("reproduction.ho2008", ["skipped"]),
    ]


def mean(value: float, low: float | None = None, high: float | None = None, **params: str) -> Mean:
    return Mean(params=params, metric="utilization", n=1 if low is None else 5, mean=value, low=low, high=high)


@pytest.mark.parametrize(
    ("before", "now", "changed"),
    [
        (mean(0.9, 0.88, 0.92), mean(0.919), False),
        (mean(0.9, 0.88, 0.92), mean(0.921), True),
        (mean(0.9, 0.88, 0.92), mean(0.879), True),
        (mean(0.9), mean(0.9 * (1 + 1e-12)), False),
        (mean(0.9), mean(0.9001), True),
        (mean(0.9, cca="reno"), mean(0.9, cca="cubic"), True),
    ],
)
def test_a_mean_outside_of_its_interval_has_changed(before: Mean, now: Mean, changed: bool) -> None:
    kept = baseline.Baseline(warpbed_baseline=1, experiment="small", means=[before])
    (change,) = baseline.changes(kept, [now])
    assert change.changed == changed and "→" in change.words


def test_a_baseline_is_kept_and_compared_by_the_command(tmp_path: Path) -> None:
    """The means are those of statistics.cells, which other tests hold against hand calculations."""
    cases = [Made(cca, 40, seed, params={"cca": cca}) for cca in ("cubic", "reno") for seed in (1, 2)]
    runs = load_experiment(make_results(tmp_path, cases, experiment="small", duration_s=4.0))
    means = baseline.means(runs, ["utilization", "flows.f1.goodput_mbps"])
    assert [(one.params, one.n) for one in means] == [
        ({"cca": "cubic", "buffer": "40p"}, 2),
        ({"cca": "reno", "buffer": "40p"}, 2),
    ]
    baseline.save(tmp_path / "b.json", "small", means)
    kept = baseline.read(tmp_path / "b.json", "small")
    assert not any(one.changed for one in baseline.changes(kept, means))
    other = [dataclasses.replace(run, metrics={**run.metrics, "utilization": 0.01}) for run in runs]
    assert all(one.changed for one in baseline.changes(kept, baseline.means(other, ["utilization"])))
    with pytest.raises(UsageError, match="baseline of small, not of other"):
        baseline.read(tmp_path / "b.json", "other")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"warpbed_baseline": 2}',
        '{"warpbed_baseline": 1, "experiment": "small", "means": [{"metric": "x"}]}',
        '{"warpbed_baseline": 1, "experiment": "small", "means": [{"params": {}, "metric": "u", "n": 1, "mean": NaN}]}',
    ],
)
def test_a_file_that_is_no_baseline_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "b.json").write_text(text)
    with pytest.raises(UsageError, match="not a baseline"):
        baseline.read(tmp_path / "b.json", "small")


def test_the_workflow_calls_commands_that_there_are() -> None:
    workflow = YAML(typ="safe").load((ROOT / "tools/ci/experiment.yml").read_text())
    lines = [
        line
        for step in workflow["jobs"]["run"]["steps"]
        for line in step.get("run", "").splitlines()
        if "./warpbed" in line
    ]
    assert len(lines) == 2
    for line in lines:
        argv = [word.strip('"') for word in line.split("||")[0].split() if not word.startswith('"$@')]
        options = parser().parse_args(argv[argv.index("./warpbed") + 1 :])
        assert str(options.experiment) == "$EXPERIMENT"
    assert (ROOT / workflow["env"]["EXPERIMENT"]).is_file()
    assert json.dumps(workflow["permissions"]) == '{"contents": "read"}'
