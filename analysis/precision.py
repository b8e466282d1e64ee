# SPDX-License-Identifier: Apache-2.0
"""How closely the means of a sweep are known, beside what `repeats: {until: …}` of the experiment file asks.

The interval is Student's t at 95 %. Looking at it after every few runs makes it a little optimistic: one that stops as
soon as it is narrow holds the true mean a few percent less often than 95 % (Law, Simulation Modeling and Analysis, s9.4.1);
the higher `least`, the less.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from analysis.metrics import find
from analysis.results import Run, show
from analysis.statistics import Cell, cells
from analysis.table import number
from schema.repeats import Precision, Repeats


@dataclass(frozen=True)
class Standing:
    """One metric of one combination.

    n: runs that count and have the metric
    mean, half (of the interval's width), allowed (half): in the metric's unit, None where n is too small
    tried: runs of the combination, whatever became of them; copies: those that gave the very same, so that more of them
    would say nothing
    """

    params: Mapping[str, Any]
    asked: Precision
    rule: Repeats
    tried: int
    n: int
    mean: float | None
    half: float | None
    allowed: float | None
    copies: int = 0

    @property
    def reached(self) -> bool:
        return self.half is not None and self.allowed is not None and self.half <= self.allowed

    @property
    def wanted(self) -> int:
        """How many runs more would do if they spread as those so far; at most as many again as there are."""
        if self.reached or self.copies:
            return 0
        if not self.half or not self.allowed:
            return 1
        return max(1, min(self.n, math.ceil(self.n * (self.half / self.allowed) ** 2) - self.n))

    def words(self) -> str:
        """One line for people: what was asked, what is there, and what ended it."""
        where = ", ".join(f"{name}={show(value)}" for name, value in self.params.items())
        unit = find(self.asked.metric).unit
        share = isinstance(self.asked.within, str)
        asked = f"± {self.asked.within}" if share else f"± {number(self.asked.within)}"
        head = f"{self.asked.metric}{f' where {where}' if where else ''}"
        if self.copies:
            return f"known: {head}: {number(self.mean)} in all {self.copies} runs; their seeds change nothing, so no more were made"
        if self.half is None or self.mean is None:
            return f"not known: {head}: {self.n} of {self.tried} runs have it, {asked} asked"
        half = f"{number(self.half / abs(self.mean) * 100)}%" if share and self.mean else number(self.half)
        line = f"{head}: {number(self.mean)}{f' {unit}' if unit != '1' else ''} ± {half} after {self.n} runs, {asked} asked"
        if self.reached:
            return f"known: {line}"
        ended = f"; ended by most: {self.rule.most}" if self.tried >= self.rule.most else "; not all runs are done"
        return f"not known: {line}{ended}"


def standings(rule: Repeats, runs: Sequence[Run]) -> list[Standing]:
    """Every combination and metric, in the order of the runs and of the rule."""
    return [_standing(rule, asked, cell) for cell in cells(runs) for asked in rule.precisions]


def _standing(rule: Repeats, asked: Precision, cell: Cell) -> Standing:
    estimate = cell.estimate(asked.metric)
    if estimate is None or estimate.t_interval is None:
        n, mean = (0, None) if estimate is None else (estimate.n, estimate.mean)
        copies = 0 if estimate is None else cell.copies
        return Standing(cell.params, asked, rule, len(cell.runs), n, mean, None, None, copies)
    half = (estimate.t_interval.high - estimate.t_interval.low) / 2
    return Standing(
        cell.params, asked, rule, len(cell.runs), estimate.n, estimate.mean, half, asked.allowed(estimate.mean)
    )


def of_spec(spec: Mapping[str, Any], runs: Sequence[Run]) -> list[Standing]:
    """As `standings`, from an experiment file as plain data; none where its repeats are a number, or what no file may have."""
    repeats = spec.get("repeats")
    try:
        return standings(Repeats.model_validate(repeats), runs) if isinstance(repeats, Mapping) else []
    except ValidationError:
        return []
