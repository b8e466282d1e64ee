# SPDX-License-Identifier: Apache-2.0
"""`repeats: {until: …}`: as many runs per combination as its mean needs, the same ones on every machine, and said when a cap ended it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from analysis.precision import standings
from analysis.results import Run
from base.errors import SpecError
from schema.repeats import Repeats
from testbed.experiments import prepare
from testbed.repeats import by_cell, rounds
from testbed.results import Results
from testbed.runner import Job
from tests import lab

SWEPT = """\
sweep:
  parameters: {buffer: topology.params.buffer}
  factorial: {buffer: [20p, 40p]}
"""


def rule(within: str | float = "2%", **more: Any) -> Repeats:
    return Repeats.model_validate({"until": {"metric": "goodput_mbps", "within": within}, **more})


def runs(values: Sequence[float | None], **params: Any) -> list[Run]:
    """A run per value; None is one that failed."""
    return [
        Run("x", f"{params}{n}", Path("x"), n, params, status="failed" if value is None else "complete",
            metrics={"goodput_mbps": value})
        for n, value in enumerate(values)
    ]  # fmt: skip


def test_the_half_width_is_students() -> None:
    """Of 10, 11 and 12: s = 1, t(0.975, 2) = 4.3027, half = 4.3027 / sqrt(3) = 2.484."""
    (standing,) = standings(rule("20%"), runs([10, 11, 12]))
    assert standing.half == pytest.approx(2.4841, abs=1e-4)
    assert standing.allowed == pytest.approx(2.2) and not standing.reached
    # 3 × (2.484 / 2.2)² = 3.8: one more would do
    assert standing.wanted == 1
    assert standings(rule(2.5), runs([10, 11, 12]))[0].reached


def test_a_combination_grows_by_what_its_spread_asks_but_at_most_twofold() -> None:
    assert standings(rule("1%"), runs([10, 11, 12]))[0].wanted == 3
    assert standings(rule("1%"), runs([11.0, 11.0, 11.0]))[0].wanted == 0
    assert standings(rule("1%"), runs([11.0, None, None]))[0].wanted == 1


def test_the_reason_of_the_end_is_reported() -> None:
    many = [10.0, 12.0] * 5
    (capped,) = standings(rule("1%", most=10), runs(many, cca="reno"))
    assert capped.words().startswith("not known: goodput_mbps where cca=reno: 11.00 Mbit/s ± ")
    assert capped.words().endswith("after 10 runs, ± 1% asked; ended by most: 10")
    (known,) = standings(rule("20%"), runs(many, cca="reno"))
    assert known.words().startswith("known: ")
    (none,) = standings(rule("1%"), runs([None, None, None], cca="reno"))
    assert none.words() == "not known: goodput_mbps where cca=reno: 0 of 3 runs have it, ± 1% asked"


def prepared_jobs(tmp_path: Path, text: str) -> tuple[list[Job], Results, Any]:
    asked = prepare(lab.write(tmp_path, lab.SMALL + text))
    jobs = [
        Job(run, plan, f"{run.params['buffer']}-s{run.seed}") for run, plan in zip(asked.runs, asked.plans, strict=True)
    ]
    return jobs, Results(tmp_path / "results", "small"), asked.experiment.repeats


def pretend(results: Results, job: Job, value: float | None) -> None:
    """A finished run with this goodput; None: one that failed."""
    folder = results.path(job.run_id + ("" if value is not None else ".failed-1"))
    folder.mkdir(parents=True, exist_ok=True)
    status = "complete" if value is not None else "failed"
    document = {"format": 1, "experiment": "small", "run": job.run_id, "seed": job.run.seed, "params": job.run.params,
                "status": status, "verdict": {"value": "valid"}, "metrics": {"goodput_mbps": value}}  # fmt: skip
    (folder / "run.json").write_text(json.dumps(document))


def test_each_combination_stops_when_its_own_mean_is_known(tmp_path: Path) -> None:
    """20p gives the same each time, 40p spreads; it goes on alone, and ends once narrow enough."""
    jobs, results, repeats = prepared_jobs(
        tmp_path, SWEPT + "repeats: {until: {metric: goodput_mbps, within: 5%}, least: 3, most: 40}\n"
    )
    assert len(jobs) == 80
    given: list[list[str]] = []
    for some in rounds(jobs, repeats, results):
        given.append([job.run_id for job in some])
        for job in some:
            wide = 1.5 if job.run.seed % 2 else -1.5
            pretend(results, job, 10.0 if job.run.params["buffer"] == "20p" else 10.0 + wide)
    assert given[0] == ["20p-s1", "20p-s2", "20p-s3", "40p-s1", "40p-s2", "40p-s3"]
    assert all(run.startswith("40p") for some in given[1:] for run in some)
    done = sum(map(len, given)) - 3
    # s = 1.5 or a little more: t s / sqrt(n) <= 0.5 from n = 38 on
    assert 36 <= done <= 40
    # the same runs again, now that all are there: nothing else is asked for
    assert [[job.run_id for job in some] for some in rounds(jobs, repeats, results)] == given


def test_most_ends_it_and_a_metric_that_no_run_has_ends_it_at_once(tmp_path: Path) -> None:
    jobs, results, repeats = prepared_jobs(
        tmp_path, SWEPT + "repeats: {until: {metric: goodput_mbps, within: 1%}, least: 2, most: 6}\n"
    )
    found = {"20p": 0, "40p": 0}
    for some in rounds(jobs, repeats, results):
        for job in some:
            buffer = str(job.run.params["buffer"])
            found[buffer] += 1
            pretend(results, job, None if buffer == "20p" else float(job.run.seed))
    assert found == {"20p": 2, "40p": 6}
    assert [len(cell) for cell in by_cell(jobs).values()] == [6, 6]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{until: {metric: goodput, within: 2%}}", "repeats.until.0.metric: no metric is called 'goodput'"),
        ("{until: {metric: goodput_mbps, within: 2}, least: 5, most: 4}", "least 5 is above most 4"),
        ("{until: {metric: goodput_mbps, within: much}}", "write a share such as 2%"),
        ("{until: {metric: goodput_mbps, within: -1%}}", "write a share such as 2%"),
        ("{until: {metric: goodput_mbps, within: 0}}", "above 0"),
        ("{until: {metric: goodput_mbps, within: nan%}}", "write a share such as 2%"),
        ("{until: []}", "repeats"),
        ("{until: {metric: goodput_mbps, within: 2%}, least: 1}", "least"),
        ("0", "repeats"),
        ("{until: {metric: goodput_mbps, within: 2%}, most: 5}\nseeds: [1, 2]", "5 repeats but 2 seeds"),
    ],
)
def test_a_wrong_rule_is_refused_with_its_place(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError) as raised:
        prepare(lab.write(tmp_path, f"{lab.SMALL}repeats: {text}\n"))
    assert words in str(raised.value), raised.value


def test_runs_stop_where_the_file_says_and_the_report_tells(kernel: object, tmp_path: Path) -> None:
    """A lossy path whose goodput spreads from seed to seed: most ends it; asked for less, it ends by itself."""
    text = lab.SMALL.replace("duration: 5s", "duration: 2s").replace("flows:", "  links: {r1-r2: {loss: 1%}}\nflows:")
    capped = text + "repeats: {until: {metric: goodput_mbps, within: 0.01%}, least: 2, most: 3}\n"
    words = lab.warpbed("execute", lab.write(tmp_path, capped), "--results", tmp_path / "results")
    assert "after 3 runs, ± 0.01% asked; ended by most: 3" in words
    page = (tmp_path / "results/small/report.html").read_text()
    assert "ended by most: 3" in page
    loose = text + "repeats: {until: {metric: goodput_mbps, within: 100}, least: 2, most: 9}\n"
    words = lab.warpbed("execute", lab.write(tmp_path, loose), "--results", tmp_path / "results")
    assert "nothing to do: all 2 runs are there" in words and "known: goodput_mbps" in words
    assert len(list((tmp_path / "results/small").glob("s*"))) == 3
