# SPDX-License-Identifier: Apache-2.0
"""A mean over the seeds is beyond a bound, on the other side of it, level with it, or not known."""

from __future__ import annotations

import math

import pytest

from analysis.reproduction.intervals import within

SAMPLE = [1.02, 0.99, 1.02]
"""1.01 on average, with a standard deviation of 0.01732: t(0.975, 2) = 4.303, so between 0.967 and 1.053."""


@pytest.mark.parametrize(
    ("level", "undecided"),
    [(0.0, True), (0.05, True), (0.0529, True), (0.0531, False)],
)
def test_a_mean_is_level_where_its_interval_lies_about_the_bound(level: float, undecided: bool) -> None:
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
