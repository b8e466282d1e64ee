# SPDX-License-Identifier: Apache-2.0
"""Kato 2012: TFWC's equation and the mean of its loss intervals, and what they decide.

p: loss event rate, 1/ALI; ALI: average loss interval, packets.
"""

from __future__ import annotations

from collections.abc import Iterator

from analysis.models.checks import Check, decides, relation
from kernels.reference.ttfwc import average, equation, inverse, weights
from schema.catalogue import Entry

__all__ = ["average", "equation", "inverse", "weights"]


@decides("kato2012-eq2.1")
def _equation(entry: Entry) -> Iterator[Check]:
    windows = (4, 10, 50, 200, 1000)
    exact = [equation(1 / inverse(W / 2)) >= W / 2 > equation(1 / (inverse(W / 2) - 1)) for W in windows]
    yield relation("1", f"the interval for half of {windows} packets is the first whose window reaches it", all(exact))


@decides("kato2012-claim3.3")
def _eight_intervals(entry: Entry) -> Iterator[Check]:
    old, new = 100.0, 400.0
    rounds = {n: _until(n, old, new, 0.9) for n in (8, 16)}
    yield relation("1", f"loss intervals until the mean has gone 9/10 of the way from 100 to 400 packets: {rounds[8]} and {rounds[16]}",
                   rounds[8] < rounds[16] <= 2 * rounds[8] + 1, rounds)  # fmt: skip


def _until(n: int, old: float, new: float, share: float) -> int:
    intervals = [old] * n
    for count in range(1, 10 * n):
        intervals = [new, *intervals[:-1]]
        if average(intervals, weights(n)) >= old + share * (new - old):
            return count
    raise AssertionError("the mean has gone all the way once every interval is new")
