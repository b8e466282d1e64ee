# SPDX-License-Identifier: Apache-2.0
"""`repeats: {until: …}`: as many runs per combination as its mean needs, the same ones on every machine, and said when a cap ended it."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from analysis.claims import check
from analysis.precision import standings
from analysis.results import Run
from base.errors import SpecError
from schema.claims import Claim
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
    counts = {"20p": 0, "40p": 0}
    for some in rounds(jobs, repeats, results):
        for job in some:
            buffer = str(job.run.params["buffer"])
            counts[buffer] += 1
            pretend(results, job, None if buffer == "20p" else float(job.run.seed))
    assert counts == {"20p": 2, "40p": 6}
    assert [len(cell) for cell in by_cell(jobs).values()] == [6, 6]


DECIDED = (
    SWEPT
    + """\
repeats: {until: decided, least: 3, most: 40}
claims:
  - source: Nobody 2026 fig 1
    says: a larger buffer has more
    metric: goodput_mbps
    greater: {first: {buffer: 40p}, second: {buffer: 20p}}
"""
)


def test_claims_are_judged_after_every_doubling_and_share_the_five_percent() -> None:
    """From 3 runs to 40: at 3, 6, 12, 24 and 40, five looks."""
    assert Repeats(until="decided", least=3, most=40).looks == 5
    assert Repeats(until="decided", least=4, most=4).looks == 1
    assert rule("1%", least=3, most=40).looks == 1


@pytest.mark.parametrize(("difference", "least", "most"), [(9.0, 6, 6), (2.0, 8, 79), (0.0, 80, 80)])
def test_what_a_claim_compares_is_repeated_until_it_is_decided(
    tmp_path: Path, difference: float, least: int, most: int
) -> None:
    """Values spread by 1.5 around means that lie far apart, apart, and not at all: few runs, more, and all that there may be."""
    jobs, results, repeats = prepared_jobs(tmp_path, DECIDED)
    claims = prepare(tmp_path / "experiment.yml").experiment.claims
    spread, given = random.Random(7), []
    for some in rounds(jobs, repeats, results, claims):
        given.append(len(some))
        for job in some:
            mean = 10.0 if job.run.params["buffer"] == "20p" else 10.0 + difference
            pretend(results, job, spread.gauss(mean, 1.5))
    assert least <= sum(given) <= most
    assert given[0] == 6 and all(count <= sum(given[:i]) for i, count in enumerate(given) if i)
    # the same command again asks for the same
    assert [len(some) for some in rounds(jobs, repeats, results, claims)] == given


def test_stopping_as_soon_as_a_claim_is_decided_is_wrong_in_at_most_five_percent() -> None:
    """Two means that are equal: a claim that they differ by more than nothing either way is never right to be contradicted or to hold."""
    claim = Claim.model_validate(
        {
            "source": "x",
            "says": "x",
            "metric": "goodput_mbps",
            "greater": {"first": {"cca": "b"}, "second": {"cca": "a"}},
        }
    )
    repeats, source = Repeats(until="decided", least=3, most=24), random.Random(11)
    wrong, cases = {"holds": 0, "contradicted": 0}, 400
    for _ in range(cases):
        values: dict[str, list[float]] = {"a": [], "b": []}
        while len(values["a"]) < repeats.most:
            for listed in values.values():
                count = min(repeats.most, 2 * len(listed) or repeats.least) - len(listed)
                listed += [source.gauss(10, 1) for _ in range(count)]
            finding = check(claim, runs(values["a"], cca="a") + runs(values["b"], cca="b"), looks=repeats.looks)
            if finding.outcome in wrong:
                wrong[finding.outcome] += 1
                break
    # of 400 cases 5 % are 20; three standard deviations more are 33
    assert max(wrong.values()) <= 33


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{until: {metric: goodput, within: 2%}}", "repeats.until.0.metric: no metric is called 'goodput'"),
        ("{until: {metric: goodput_mbps, within: 2}, least: 5, most: 4}", "least 5 is above most 4"),
        ("{until: {metric: goodput_mbps, within: much}}", "write a share such as 2%"),
        ("{until: {metric: goodput_mbps, within: -1%}}", "write a share such as 2%"),
        ("{until: {metric: goodput_mbps, within: 0}}", "above 0"),
        ("{until: {metric: goodput_mbps, within: nan%}}", "write a share such as 2%"),
        ("{until: []}", "repeats"),
        ("{until: decided}", "there are no `claims`"),
        ("{until: {metric: goodput_mbps, within: 2%}, least: 1}", "least"),
        ("0", "repeats"),
        ("{until: {metric: goodput_mbps, within: 2%}, most: 5}\nseeds: [1, 2]", "5 repeats but 2 seeds"),
    ],
)
def test_a_wrong_rule_is_refused_with_its_place(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError) as raised:
        prepare(lab.write(tmp_path, f"{lab.SMALL}repeats: {text}\n"))
    assert message in str(raised.value), raised.value


def test_runs_stop_where_the_file_says_and_the_report_tells(kernel: object, tmp_path: Path) -> None:
    """A lossy path whose goodput spreads from seed to seed: most ends it; asked for less, it ends by itself."""
    text = lab.SMALL.replace("duration: 5s", "duration: 2s").replace("flows:", "  links: {r1-r2: {loss: 1%}}\nflows:")
    capped = text + "repeats: {until: {metric: goodput_mbps, within: 0.01%}, least: 2, most: 3}\n"
    output = lab.warpbed("execute", lab.write(tmp_path, capped), "--results", tmp_path / "results")
    assert "after 3 runs, ± 0.01% asked; ended by most: 3" in output
    page = (tmp_path / "results/small/report.html").read_text()
    assert "ended by most: 3" in page
    loose = text + "repeats: {until: {metric: goodput_mbps, within: 100}, least: 2, most: 9}\n"
    output = lab.warpbed("execute", lab.write(tmp_path, loose), "--results", tmp_path / "results")
    assert "nothing to do: all 2 runs are there" in output and "known: goodput_mbps" in output
    assert len(list((tmp_path / "results/small").glob("s*"))) == 3
