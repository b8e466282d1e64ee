# SPDX-License-Identifier: Apache-2.0
"""Random draws of traffic: few distributions, each by inversion of one uniform number, the same on every Python.

Used where plans are made and where they are executed, so the standard library only.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any


@dataclass(frozen=True)
class Distribution:
    """A distribution of positive numbers.

    kind: constant (first: the value), exponential (first: the mean), pareto (first: the mean, second: the shape, above
    1), uniform (from first to second)
    """

    kind: str
    first: float
    second: float = 0.0

    def draw(self, random: Random) -> float:
        """One value."""
        if self.kind == "constant":
            return self.first
        return self.quantile(random.random())

    def quantile(self, p: float) -> float:
        """The value that a share p of all values, 0 ≤ p < 1, does not exceed."""
        if self.kind == "exponential":
            return -math.log1p(-p) * self.first
        if self.kind == "pareto":  # smallest value: mean × (shape − 1) / shape
            return self.first * (self.second - 1) / self.second * math.pow(1 - p, -1 / self.second)
        if self.kind == "uniform":
            return self.first + (self.second - self.first) * p
        return self.first

    @property
    def mean(self) -> float:
        return (self.first + self.second) / 2 if self.kind == "uniform" else self.first


def from_plan(data: dict[str, Any]) -> Distribution:
    """The distribution that `dataclasses.asdict` made a plan's entry of."""
    return Distribution(str(data["kind"]), float(data["first"]), float(data["second"]))


def seed_of(seed: int, *names: str) -> int:
    """64 bits for one stream of draws, from the run's seed and what the stream is for: streams do not depend on one
    another, so adding a flow changes none of the others."""
    text = "\0".join(["warpbed traffic", str(seed), *names])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def stream(seed: int) -> Random:
    """The random numbers of a seed; Mersenne Twister, whose numbers no version of Python changes."""
    return Random(seed)  # noqa: S311 — traffic, not secrets


def periods(
    on: Distribution | None, off: Distribution | None, start_s: float, stop_s: float, random: Random
) -> Iterator[tuple[float, float]]:
    """Alternating busy periods (from, to), seconds, first one at start_s; all the time where there is no `off`."""
    if on is None or off is None:
        yield start_s, stop_s
        return
    here = start_s
    while here < stop_s:
        end = here + on.draw(random)
        yield here, min(end, stop_s)
        here = end + off.draw(random)


def arrivals(gap: Distribution, start_s: float, stop_s: float, random: Random) -> Iterator[float]:
    """Times from start_s to before stop_s with gaps drawn one by one; the first is one gap after start_s, so that
    exponential gaps make a Poisson process. Constant gaps begin at start_s."""
    here = start_s + (0.0 if gap.kind == "constant" else gap.draw(random))
    while here < stop_s:
        yield here
        here += gap.draw(random)
