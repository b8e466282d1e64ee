# SPDX-License-Identifier: Apache-2.0
"""A paper's numbers beside the measured ones: agrees, disagrees, or not comparable and why.

A value agrees when the mean over the seeds lies within the tolerance, or when the mean's 95 % interval reaches into
it. An order agrees when no two means stand the other way round; two whose difference may be none (its 95 % interval,
Welch's, has 0 in it) decide nothing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from analysis.metrics import find
from analysis.metrics.absence import why
from analysis.results import Run, parameters, show
from analysis.statistics import Estimate, Interval, cells, t_quantile
from schema.published import Published, PublishedValue

Outcome = Literal["agrees", "disagrees", "not comparable"]
OUTCOMES: tuple[Outcome, ...] = ("agrees", "disagrees", "not comparable")
NO_INTERVAL = "one observation"
"""What stands where an interval would, of a single run or of runs that are copies of one another."""


@dataclass(frozen=True)
class Row:
    """One published value.

    measured: mean over the runs that count, None without any; interval: its 95 % interval (Student's t), None for one
    run; runs: how many; known: the file explains the disagreement
    """

    source: str
    metric: str
    unit: str
    where: Mapping[str, Any]
    published: float | None
    measured: float | None
    interval: Interval | None
    runs: int
    outcome: Outcome
    reason: str
    known: bool = False

    @property
    def place(self) -> str:
        return ", ".join(f"{name} = {show(value)}" for name, value in self.where.items()) or "all runs"


def compare(claims: Sequence[Published], runs: Sequence[Run]) -> tuple[Row, ...]:
    """All rows of an experiment's published tables, in the file's order."""
    return tuple(row for claim in claims for row in _table(claim, runs))


def parse_all(data: Any) -> list[Published]:
    """The published tables of a recorded specification; raises pydantic's ValidationError."""
    return [Published.model_validate(row) for row in data or ()]


def failed(rows: Sequence[Row]) -> bool:
    """Whether something disagrees that the file does not explain."""
    return any(row.outcome == "disagrees" and not row.known for row in rows)


def as_data(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The rows as JSON holds them."""
    return [
        {
            "source": row.source,
            "metric": row.metric,
            "unit": row.unit,
            "where": dict(row.where),
            "published": row.published,
            "measured": row.measured,
            "interval": None if row.interval is None else [row.interval.low, row.interval.high],
            "runs": row.runs,
            "outcome": row.outcome,
            "known": row.known,
            "reason": row.reason,
        }
        for row in rows
    ]


def _table(claim: Published, runs: Sequence[Run]) -> list[Row]:
    rows = [_row(claim, value, runs) for value in claim.values]
    if claim.order:
        rows = _ordered(rows, claim.tolerance is not None)
    if claim.differs:
        rows = [
            replace(row, known=True, reason="; ".join(part for part in (row.reason, f"known: {claim.differs}") if part))
            if row.outcome == "disagrees"
            else row
            for row in rows
        ]
    return rows


def _row(claim: Published, value: PublishedValue, runs: Sequence[Run]) -> Row:
    estimate, problem = _measured(claim.metric, value.where, runs)
    outcome: Outcome = "not comparable"
    if claim.not_comparable:
        reason = claim.not_comparable
    elif value.value is None:
        reason = "the number is lost in the paper's copy"
    elif estimate is None:
        reason = problem
    else:
        outcome, reason = _judged(claim, value.value * claim.times, estimate)
    return Row(
        source=claim.source,
        metric=claim.metric,
        unit=find(claim.metric).unit,
        where=value.where,
        published=value.value,
        measured=None if estimate is None else estimate.mean,
        interval=None if estimate is None else estimate.t_interval,
        runs=0 if estimate is None else estimate.n,
        outcome=outcome,
        reason=reason,
    )


def _judged(claim: Published, published: float, estimate: Estimate) -> tuple[Outcome, str]:
    allowed = claim.allowed(published)
    if allowed is None:
        return "agrees", ""  # the order decides
    low, high = published - allowed, published + allowed
    if low <= estimate.mean <= high:
        return "agrees", ""
    apart = f"{abs(estimate.mean - published) / abs(published):.0%}" if published else f"{abs(estimate.mean):.3g}"
    note = f"{apart} {'above' if estimate.mean > published else 'below'} the published value{_times(claim)}"
    interval = estimate.t_interval
    if interval is not None and interval.low <= high and interval.high >= low:
        return "agrees", f"{note}; its interval reaches the tolerance"
    return "disagrees", note


def _times(claim: Published) -> str:
    return "" if claim.times == 1 else f" times {claim.times:g} ({claim.because})"


def _measured(metric: str, where: Mapping[str, Any], runs: Sequence[Run]) -> tuple[Estimate | None, str]:
    known = parameters(runs)
    strange = [name for name in where if name not in known]
    if strange:
        return None, f"no run has a parameter {', '.join(strange)}"
    meant = [
        cell for cell in cells(runs) if all(show(cell.params.get(name)) == show(value) for name, value in where.items())
    ]
    if not meant:
        return None, "not measured: no run has these parameters"
    if len(meant) > 1:
        open_names = [name for name in known if len({show(cell.params.get(name)) for cell in meant}) > 1]
        return None, f"{len(meant)} combinations match; `where` has to name {', '.join(open_names)}"
    estimate = meant[0].estimate(metric)
    if estimate is None:
        counted = meant[0].counted
        if not counted:
            return None, "no run of these is complete and valid"
        return None, f"{metric} is unknown in the runs: {why(metric, counted[0].sources)}"
    return estimate, ""


def _ordered(rows: Sequence[Row], judged: bool) -> list[Row]:
    """Rows with what the order says: contradicted by which others, or undecided."""
    against: dict[int, list[str]] = {}
    undecided: dict[int, list[str]] = {}
    usable = [i for i, row in enumerate(rows) if row.published is not None and row.measured is not None]
    for i, j in itertools.combinations(usable, 2):
        a, b = rows[i], rows[j]
        assert a.published is not None and b.published is not None and a.measured is not None and b.measured is not None
        if a.published == b.published or (a.published > b.published) == (a.measured > b.measured):
            continue
        target = undecided if _alike(a, b) else against
        target.setdefault(i, []).append(b.place)
        target.setdefault(j, []).append(a.place)
    result = []
    for i, before in enumerate(rows):
        row = before
        if i in against:
            note = f"the other way round with {_few(against[i])}"
            row = replace(row, outcome="disagrees", reason="; ".join(part for part in (row.reason, note) if part))
        elif i in undecided and not (judged and row.outcome == "disagrees"):
            note = f"the intervals do not decide the order with {_few(undecided[i])}"
            row = replace(row, outcome="not comparable", reason=note)
        result.append(row)
    return result


def _alike(a: Row, b: Row) -> bool:
    """Whether the interval of the difference has 0 in it; between two single runs there is none that could."""
    if a.interval is None or b.interval is None:
        return False
    assert a.measured is not None and b.measured is not None
    errors = [_error(row.interval, row.runs) for row in (a, b) if row.interval is not None]
    variance = sum(error**2 for error in errors)
    if variance == 0:
        return a.measured == b.measured
    below = sum(error**4 / (row.runs - 1) for error, row in zip(errors, (a, b), strict=True))
    degrees = int(variance**2 / below + 1e-9)  # Welch and Satterthwaite; whole ones, rounded down: a wider interval
    return abs(a.measured - b.measured) <= t_quantile(0.975, degrees) * math.sqrt(variance)


def _error(interval: Interval, runs: int) -> float:
    """Of the mean, from its interval."""
    return (interval.high - interval.low) / 2 / t_quantile(0.975, runs - 1)


def _few(names: Sequence[str]) -> str:
    return "; ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
