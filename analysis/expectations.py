# SPDX-License-Identifier: Apache-2.0
"""An experiment's expectations against its runs: holds, does not hold, or cannot be compared and why.

An expectation is {metric, where: {param: value}, min | max | equals | within: [low, high], source}. It holds when
every run that it is about, and that counts, keeps to the bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from analysis.errors import ExpectationError, UnknownMetricError
from analysis.metrics import find, lookup
from analysis.metrics.absence import why
from analysis.results import Run, parameters, show
from analysis.statistics import is_number

Outcome = Literal["holds", "does not hold", "not comparable"]
BOUNDS = ("min", "max", "equals", "within")
FIELDS = ("metric", "where", *BOUNDS, "source", "note")
# Two ways to the same decimal number differ by rounding only.
EQUAL_REL = 1e-9


@dataclass(frozen=True)
class Expectation:
    metric: str
    low: float = -math.inf
    high: float = math.inf
    equals: Any = None
    where: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    note: str = ""

    @property
    def bound(self) -> str:
        """The claim in signs."""
        if self.equals is not None:
            return f"= {show(self.equals)}"
        if math.isinf(self.low):
            return f"≤ {self.high:g}"
        if math.isinf(self.high):
            return f"≥ {self.low:g}"
        return f"{self.low:g} … {self.high:g}"

    def kept_by(self, value: Any) -> bool:
        if self.equals is not None:
            if is_number(value) and is_number(self.equals):
                return math.isclose(value, self.equals, rel_tol=EQUAL_REL)
            return bool(value == self.equals)
        return is_number(value) and self.low <= value <= self.high


@dataclass(frozen=True)
class Finding:
    """What became of an expectation: its outcome, the values of the runs compared, and words where they are needed."""

    expectation: Expectation
    outcome: Outcome
    values: Mapping[str, Any]
    reason: str


def parse(data: Mapping[str, Any]) -> Expectation:
    """An expectation from an experiment file's mapping, checked."""
    unknown = [name for name in data if name not in FIELDS]
    if unknown:
        raise ExpectationError(f"expectation has {', '.join(unknown)}; it may have {', '.join(FIELDS)}")
    name = data.get("metric")
    if not isinstance(name, str):
        raise ExpectationError(f"expectation names {name!r} as its metric; write the name of one")
    try:
        find(name)
    except UnknownMetricError as error:
        raise ExpectationError(f"expectation on {name}: {error}") from error
    bounds = [bound for bound in BOUNDS if data.get(bound) is not None]
    if not bounds or (len(bounds) > 1 and ("equals" in bounds or "within" in bounds)):
        raise ExpectationError(
            f"expectation on {name} has {bounds or 'no bound'}; write min, max or both, or equals, or within"
        )
    low, high = data.get("min"), data.get("max")
    if "within" in bounds:
        within = data["within"]
        if not isinstance(within, Sequence) or isinstance(within, str) or len(within) != 2:
            raise ExpectationError(f"expectation on {name}: within is {within!r}; write [low, high]")
        low, high = within
    for value in (low, high):
        if value is not None and not is_number(value):
            raise ExpectationError(f"expectation on {name}: {value!r} is not a number")
    where = data.get("where") or {}
    if not isinstance(where, Mapping):
        raise ExpectationError(f"expectation on {name}: where is {where!r}; write parameters with their values")
    return Expectation(
        metric=name,
        low=-math.inf if low is None else float(low),
        high=math.inf if high is None else float(high),
        equals=data.get("equals"),
        where=dict(where),
        source=str(data.get("source") or ""),
        note=str(data.get("note") or ""),
    )


def check(expectation: Expectation, runs: Sequence[Run]) -> Finding:
    """Hold one expectation against an experiment's runs."""
    known = parameters(runs)
    strange = [name for name in expectation.where if name not in known]
    if strange:
        return _apart(
            expectation, f"no run has a parameter {', '.join(strange)}; there are {', '.join(known) or 'none'}"
        )
    meant = [run for run in runs if _matches(run, expectation.where)]
    if not meant:
        return _apart(expectation, "no run has these parameters")
    counted = [run for run in meant if run.counted]
    if not counted:
        return _apart(expectation, f"no run of these counts ({_standings(meant)})")
    values = {run.run: lookup(dict(run.metrics), expectation.metric) for run in counted}
    unknown = [run for run, value in values.items() if value is None]
    if unknown:
        which = "all of them" if len(unknown) == len(values) else ", ".join(unknown)
        sources = next(run.sources for run in counted if run.run == unknown[0])
        reason = f"{expectation.metric} is unknown in {which}: {why(expectation.metric, sources)}"
        return Finding(expectation, "not comparable", values, reason)
    broken = [run for run, value in values.items() if not expectation.kept_by(value)]
    notes = []
    if broken:
        notes.append(f"not in {len(broken)} of {len(values)} runs")
    if len(counted) < len(meant):
        notes.append(
            f"{len(meant) - len(counted)} runs left out ({_standings([run for run in meant if not run.counted])})"
        )
    suspect = sum(run.verdict == "suspect" for run in counted)
    if suspect:
        notes.append(f"{suspect} of the runs are suspect")
    return Finding(expectation, "does not hold" if broken else "holds", values, "; ".join(notes))


def check_all(
    data: Sequence[Mapping[str, Any]],
    runs: Sequence[Run],
    unasked: Sequence[Mapping[str, Any]] = (),
) -> tuple[Finding, ...]:
    """Hold every expectation of a file against the runs.

    unasked: parameters of the file's runs that were not asked for this time; an expectation about these alone is left out
    """
    claims = [parse(row) for row in data]
    return tuple(check(claim, runs) for claim in claims if not _was_left_out(claim, runs, unasked))


def _was_left_out(claim: Expectation, runs: Sequence[Run], unasked: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a claim speaks of runs that were not asked for, and of no run that was."""
    asked_for = any(_has(run.params, claim.where) for run in runs)
    return not asked_for and any(_has(params, claim.where) for params in unasked)


def _matches(run: Run, where: Mapping[str, Any]) -> bool:
    return run.status not in ("unreadable", "missing") and _has(run.params, where)


def _has(params: Mapping[str, Any], where: Mapping[str, Any]) -> bool:
    return all(params.get(name) == value or show(params.get(name)) == show(value) for name, value in where.items())


def _standings(runs: Sequence[Run]) -> str:
    counts: dict[str, int] = {}
    for run in runs:
        counts[run.standing] = counts.get(run.standing, 0) + 1
    return ", ".join(f"{count} {standing}" for standing, count in counts.items())


def _apart(expectation: Expectation, reason: str) -> Finding:
    return Finding(expectation, "not comparable", {}, reason)
