# SPDX-License-Identifier: Apache-2.0
"""A mean over the seeds is beyond a bound, on the other side of it, level with it, or not known."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest

from analysis.contrasts import mean_of_means
from analysis.reproduction.intervals import within
from analysis.reproduction.kato2012 import over_n
from analysis.results import Run
from analysis.statistics import estimate

SAMPLE = [1.02, 0.99, 1.02]
"""1.01 on average, with a standard deviation of 0.01732: t(0.975, 2) = 4.303, so between 0.967 and 1.053."""


@pytest.mark.parametrize(
    ("level", "undecided"),
    [(0.0, True), (0.03, True), (0.0330, True), (0.0331, False)],
)
def test_a_mean_is_level_where_it_is_known_to_be_beyond_the_bound_by_no_more(level: float, undecided: bool) -> None:
    check = within("1", "", SAMPLE, -math.inf, math.nextafter(1, -math.inf), level=level)
    assert (check.holds, check.undecided) == (False, undecided)
    assert check.reason.startswith("level") is not undecided
    other = within("1", "", [2 - value for value in SAMPLE], math.nextafter(1, math.inf), math.inf, level=level)
    assert (other.holds, other.undecided) == (False, undecided)


def test_what_is_beyond_the_bound_holds_however_near_it_is() -> None:
    assert within("1", "", [0.998, 0.997, 0.998], -math.inf, math.nextafter(1, -math.inf), level=0.1).holds


def test_one_number_is_never_level() -> None:
    check = within("1", "", [1.0], -math.inf, math.nextafter(1, -math.inf), level=1.0)
    assert (check.holds, check.undecided) == (False, True)


def test_a_mean_of_means_has_each_sample_s_own_spread() -> None:
    """By hand: means 2 and 12; variances of the means 1 / 3 and 8 / 2, a quarter of each: 13 / 12 with 1.1696 degrees of freedom."""
    known = mean_of_means([[1, 2, 3], [10, 14]])
    assert known is not None
    assert known.mean == 7
    assert known.error**2 == pytest.approx(13 / 12)
    assert known.degrees == pytest.approx((13 / 12) ** 2 / ((1 / 12) ** 2 / 2 + 1))
    interval = known.interval(0.025)
    assert interval is not None and interval.high - 7 == pytest.approx(12.706 * known.error, rel=1e-4)  # t with 1
    assert mean_of_means([[1, 2], []]) is None


@pytest.mark.parametrize("n", range(2, 40))
def test_one_sample_alone_has_student_s_interval(n: int) -> None:
    sample = [math.sin(i) for i in range(n)]
    known, asked = mean_of_means([sample]), estimate(sample)
    assert known is not None and asked is not None and asked.t_interval is not None
    interval = known.interval(0.025)
    assert interval is not None and (interval.low, interval.high) == pytest.approx(
        dataclasses.astuple(asked.t_interval)
    )


def test_a_sample_of_one_leaves_the_mean_unknown() -> None:
    assert within("1", "", mean_of_means([[1, 2, 3], [2]]), 0, 1).undecided
    assert within("1", "", None, 0, 1).undecided


def test_means_over_a_sweep_take_every_seed_of_each_of_its_points() -> None:
    """Half a sweep's seeds are no reason to leave out the others."""
    runs = [
        run(n, seed, value)
        for n, values in ((1, (1.0, 2.0, 3.0)), (8, (10.0, 14.0)))
        for seed, value in enumerate(values)
    ]
    known = over_n([*runs, run(1, 9, 100.0, tp=90)], lambda one: float(one.metrics["x"]), tp=0)
    assert known is not None and (known.mean, known.n) == (7, 2)


def run(n: int, seed: int, value: float, tp: int = 0) -> Run:
    params = {"n": n, "tp": tp}
    return Run("e", f"{n}-{seed}", Path("r"), seed, params, "virtual", "complete", "", "valid", (), {"x": value})
