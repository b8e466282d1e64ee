# SPDX-License-Identifier: Apache-2.0
"""Cells of a sweep: means with confidence intervals, and comparisons paired by seed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.arrays import np
from analysis.metrics import lookup
from analysis.results import Run, parameters, show

CONFIDENCE = 0.95
RESAMPLES = 10_000
BOOTSTRAP_SEED = 20260101


@dataclass(frozen=True)
class Interval:
    low: float
    high: float


@dataclass(frozen=True)
class Estimate:
    """A mean of n values. The intervals are None for fewer than two values: one observation says nothing about spread."""

    n: int
    mean: float
    t_interval: Interval | None
    bootstrap_interval: Interval | None


@dataclass(frozen=True)
class Cell:
    """One combination of the sweep's parameters with the runs that it has, seeds apart."""

    params: Mapping[str, Any]
    runs: tuple[Run, ...]

    @property
    def counted(self) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if run.counted)

    @property
    def copies(self) -> int:
        """How many runs gave the very same metrics, where all that count did; else 0.

        Their seeds changed nothing (nothing random is in the experiment), so they are one observation.
        """
        counted = self.counted
        same = len(counted) > 1 and all(run.metrics == counted[0].metrics for run in counted[1:])
        return len(counted) if same else 0

    @property
    def observations(self) -> tuple[Run, ...]:
        """The runs that count, copies of one another once."""
        return self.counted[:1] if self.copies else self.counted

    def values(self, metric: str) -> list[float]:
        """The metric's number in each observation that has it."""
        numbers = [lookup(dict(run.metrics), metric) for run in self.observations]
        return [float(value) for value in numbers if is_number(value)]

    def estimate(self, metric: str) -> Estimate | None:
        return estimate(self.values(metric))


@dataclass(frozen=True)
class Paired:
    """Differences b − a of a metric between two cells, seed by seed."""

    metric: str
    seeds: tuple[int, ...]
    difference: Estimate


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def cells(runs: Sequence[Run]) -> tuple[Cell, ...]:
    """The runs by parameters, in the order in which they come. Runs without readable parameters belong to none."""
    names = parameters(runs)
    groups: dict[tuple[str, ...], list[Run]] = {}
    for run in runs:
        if run.status not in ("unreadable", "missing"):
            groups.setdefault(tuple(show(run.params.get(name)) for name in names), []).append(run)
    return tuple(Cell(members[0].params, tuple(members)) for members in groups.values())


def estimate(values: Sequence[float], confidence: float = CONFIDENCE) -> Estimate | None:
    """Mean with Student's t interval and a percentile bootstrap interval; None without values."""
    sample = np.asarray(values, dtype=np.float64)
    if sample.size == 0:
        return None
    mean = float(sample.mean())
    if sample.size < 2:
        return Estimate(int(sample.size), mean, None, None)
    half = t_quantile(0.5 + confidence / 2, sample.size - 1) * float(sample.std(ddof=1)) / math.sqrt(sample.size)
    random = np.random.default_rng(BOOTSTRAP_SEED)  # the same values give the same interval
    means = random.choice(sample, (RESAMPLES, sample.size)).mean(axis=1)
    low, high = np.quantile(means, [0.5 - confidence / 2, 0.5 + confidence / 2])
    return Estimate(int(sample.size), mean, Interval(mean - half, mean + half), Interval(float(low), float(high)))


def paired(a: Cell, b: Cell, metric: str) -> Paired | None:
    """What changes from cell a to cell b at equal seeds; None where no seed has the metric in both."""
    # where neither cell's seeds change anything, every pair is the same pair
    members = [cell.observations for cell in (a, b)] if a.copies and b.copies else [a.counted, b.counted]
    before, after = ({run.seed: lookup(dict(run.metrics), metric) for run in runs} for runs in members)
    seeds = sorted(
        seed for seed in before if seed is not None and is_number(before[seed]) and is_number(after.get(seed))
    )
    difference = estimate([after[seed] - before[seed] for seed in seeds])
    return None if difference is None else Paired(metric, tuple(seeds), difference)


def t_cdf(t: float, degrees: int) -> float:
    """Student's t distribution for whole degrees of freedom (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    theta = math.atan(t / math.sqrt(degrees))
    cos, sin = math.cos(theta), math.sin(theta)
    odd = degrees % 2 == 1
    term = total = cos if odd else 1.0
    for k in range(3 if odd else 2, degrees - 1, 2):
        term *= cos * cos * ((k - 1) / k)
        total += term
    if degrees == 1:
        total = 0.0
    within = 2 / math.pi * (theta + sin * total) if odd else sin * total
    return (1 + within) / 2


def t_quantile(probability: float, degrees: int) -> float:
    """The t that `t_cdf` maps to a probability in (0.5, 1), by bisection."""
    low, high = 0.0, 1.0
    while t_cdf(high, degrees) < probability:
        low, high = high, high * 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if t_cdf(middle, degrees) < probability else (low, middle)
    return (low + high) / 2
