# SPDX-License-Identifier: Apache-2.0
"""Linear contrasts of cells' means, and what an interval says of them.

A contrast is constant + Σ weight · mean of a metric in a cell. Where the cells share seeds it is formed seed by seed, so that
what a seed does to all of them cancels; else the cells count as independent (Welch's interval). Two of a contrast's
terms may be different metrics of the same runs.

The degrees of freedom of independent cells are those of Welch and Satterthwaite.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from analysis.arrays import np
from analysis.metrics import lookup
from analysis.statistics import Cell, Interval, is_number, t_quantile

ROUNDING = 1e-9
"""A sum that is 4 but for its last digits has four degrees of freedom."""
MANY_DEGREES = 100
"""From here on the expansion about the normal distribution is exact to five figures."""


@functools.lru_cache(maxsize=4096)
def _quantile(probability: float, degrees: int) -> float:
    """Student's t; for many degrees of freedom by its expansion about the normal distribution."""
    if degrees < MANY_DEGREES:
        return t_quantile(probability, degrees)
    z = NormalDist().inv_cdf(probability)
    return z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)


@dataclass(frozen=True)
class Term:
    """within: in place of the number, 1 where it lies within these bounds and 0 where it does not: the mean is the runs' share"""

    weight: float
    cell: Cell
    metric: str
    within: tuple[float, float] | None = None

    def by_seed(self) -> dict[int | None, float]:
        """The metric's number in each run that counts and has it; runs without a seed of their own cannot be paired."""
        numbers = {run.seed: lookup(dict(run.metrics), self.metric) for run in self.cell.counted}
        found = {seed: float(value) for seed, value in numbers.items() if is_number(value)}
        if self.within is None:
            return found
        low, high = self.within
        return {seed: float(low <= value <= high) for seed, value in found.items()}


@dataclass(frozen=True)
class Spread:
    """How well a contrast is known.

    error: its standard error; 0 with `exact`
    degrees: degrees of freedom of Student's t; 0 where a single observation says nothing of spread
    n: observations (of the cell with the fewest)
    paired: formed seed by seed
    exact: no cell's seeds change anything, so that more runs would say the same
    """

    mean: float
    error: float
    degrees: float
    n: int
    paired: bool
    exact: bool

    def interval(self, tail: float) -> Interval | None:
        """The interval that leaves `tail` of the probability on each side; None where nothing is known of spread."""
        if self.exact:
            return Interval(self.mean, self.mean)
        if self.degrees < 1:
            return None
        # whole degrees, rounded down: a wider interval
        half = _quantile(1 - tail, int(self.degrees + ROUNDING)) * self.error
        return Interval(self.mean - half, self.mean + half)

    def more_for(self, distance: float, tail: float, most: int) -> int | None:
        """How many observations more make half the interval no wider than `distance`; None where `most` would not do."""
        if self.exact or distance <= 0:
            return None
        if self.degrees < 1:
            return 2 - self.n if self.n < 2 else 1
        spread = self.error * math.sqrt(self.n)
        normal = (_quantile(1 - tail, 10**6) * spread / distance) ** 2  # fewer never do
        for n in _sizes(max(self.n + 1, math.floor(min(normal, most + 1))), most):
            degrees = max(1, int(self.degrees * (n - 1) / max(1, self.n - 1)))
            if _quantile(1 - tail, degrees) * spread / math.sqrt(n) <= distance:
                return n - self.n
        return None


class ShareSpread(Spread):
    """How well a share of runs is known: the binomial distribution's exact interval (Clopper and Pearson), not Student's."""

    def interval(self, tail: float) -> Interval | None:
        return share_interval(round(self.mean * self.n), self.n, tail)

    def more_for(self, distance: float, tail: float, most: int) -> int | None:
        """As if the share remained what it is, and the bound were on the side of a half."""
        if distance <= 0:
            return None
        for n in _sizes(self.n + 1, most):
            there = share_interval(round(self.mean * n), n, tail)
            if (self.mean - there.low if self.mean > 0.5 else there.high - self.mean) <= distance:
                return n - self.n
        return None


def share_interval(k: int, n: int, tail: float) -> Interval:
    """The shares with which k of n or more, and k of n or fewer, are at least as likely as `tail`."""

    def solved(chance: Callable[[float], float], rising: bool) -> float:
        low, high = 0.0, 1.0
        for _ in range(60):
            share = (low + high) / 2
            low, high = (share, high) if (chance(share) < tail) == rising else (low, share)
        return (low + high) / 2

    def up_to(most: int, share: float) -> float:
        return sum(math.comb(n, i) * share**i * (1 - share) ** (n - i) for i in range(most + 1))

    least = 0.0 if k == 0 else solved(lambda share: 1 - up_to(k - 1, share), rising=True)
    greatest = 1.0 if k == n else solved(lambda share: up_to(k, share), rising=False)
    return Interval(least, greatest)


def spread(terms: Sequence[Term], constant: float = 0.0) -> Spread | None:
    """The contrast over the runs that count; None where a cell has no run with the metric."""
    numbers = [term.by_seed() for term in terms]
    if not all(numbers):
        return None
    fixed = [bool(term.cell.copies) for term in terms]
    if all(fixed):
        mean = constant + sum(term.weight * _mean(values) for term, values in zip(terms, numbers, strict=True))
        return Spread(mean, 0.0, 0.0, 1, paired=False, exact=True)
    if len(terms) == 1 and terms[0].within is not None:
        return ShareSpread(_mean(numbers[0]), 0.0, 0.0, len(numbers[0]), paired=False, exact=False)
    moving = [values for values, still in zip(numbers, fixed, strict=True) if not still]
    shared = sorted(seed for seed in set.intersection(*map(set, moving)) if seed is not None)
    if len(shared) >= 2:
        return _paired(terms, numbers, fixed, shared, constant)
    return _independent(terms, numbers, fixed, constant)


def _paired(
    terms: Sequence[Term],
    numbers: Sequence[dict[int | None, float]],
    fixed: Sequence[bool],
    seeds: Sequence[int],
    constant: float,
) -> Spread:
    sample = np.full(len(seeds), constant)
    for term, values, still in zip(terms, numbers, fixed, strict=True):
        sample += term.weight * (_mean(values) if still else np.array([values[seed] for seed in seeds]))
    n = len(seeds)
    error = float(sample.std(ddof=1)) / math.sqrt(n) if n > 1 else 0.0
    return Spread(float(sample.mean()), error, float(n - 1), n, paired=len(terms) > 1, exact=False)


def _independent(
    terms: Sequence[Term], numbers: Sequence[dict[int | None, float]], fixed: Sequence[bool], constant: float
) -> Spread:
    parts = zip(terms, numbers, fixed, strict=True)
    still = sum(term.weight * _mean(values) for term, values, is_fixed in parts if is_fixed)
    parts = zip(terms, numbers, fixed, strict=True)
    return _summed([(term.weight, list(v.values())) for term, v, is_fixed in parts if not is_fixed], constant + still)


def mean_of_means(samples: Sequence[Sequence[float]]) -> Spread | None:
    """The mean over samples that know nothing of one another, each with as many observations as it has; None where one is empty."""
    if not samples or not all(samples):
        return None
    return _summed([(1 / len(samples), sample) for sample in samples], 0.0)


def _summed(parts: Sequence[tuple[float, Sequence[float]]], constant: float) -> Spread:
    """constant + Σ weight · mean of independent samples."""
    mean, variance, below, least = constant, 0.0, 0.0, math.inf
    single = False
    for weight, sample in parts:
        n = len(sample)
        mean += weight * sum(sample) / n
        least = min(least, n)
        if n < 2:
            single = True
            continue
        part = weight**2 * float(np.var(sample, ddof=1)) / n
        variance += part
        below += part**2 / (n - 1)
    degrees = 0.0 if single else (variance**2 / below if below > 0 else max(1.0, least - 1))
    return Spread(mean, math.sqrt(variance), degrees, int(least), paired=False, exact=False)


def _mean(values: dict[int | None, float]) -> float:
    return sum(values.values()) / len(values)


def _sizes(first: int, most: int) -> Sequence[int]:
    """Sample sizes to try: each up to 50, then in steps of 2 %."""
    sizes, size = [], first
    while size <= most:
        sizes.append(size)
        size += 1 if size < 50 else size // 50
    return sizes
