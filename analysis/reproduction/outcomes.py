# SPDX-License-Identifier: Apache-2.0
"""The outcome of a catalogue's entry from what its parts came to.

A part is decided by claims and published values of experiments (over the seeds, analysis.claims) and by calculations (analysis.models).
An entry

- *agrees* where every part that was decided holds, a printed number among them,
- *agrees in order or shape* where every relation holds, but no printed number was compared, or one does not hold,
- *contradicts* where a relation does not hold, or nothing but numbers was compared and one does not hold,
- is *undecided* where the runs do not say, and *not run yet* where there are none; a part that a calculation has decided does not wait
  for runs, nor an entry for more numbers once one of them does not hold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from analysis import claims, published
from analysis.models.checks import Check, Kind
from analysis.table import number
from schema.catalogue import Entry
from schema.claims import Bounds, Claim, Crossing, Curve, Difference, Greater, Mostly, Near, Order, Ratio, Same, Trend

Outcome = Literal[
    "agrees",
    "agrees in order or shape",
    "contradicts",
    "undecided",
    "not run yet",
    "not bound yet",
    "cannot be compared",
]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
Held = Literal["holds", "contradicted", "undecided", "not run yet"]


@dataclass(frozen=True)
class Evidence:
    """One thing that speaks of a part of an entry.

    by: the experiment's file below the checkout, or the model's function
    published, measured: as shown to a reader; measured with its interval
    seeds: runs behind the measurement, 0 for a calculation
    explains: it does not decide the part but shows why another experiment contradicts it
    """

    part: str
    kind: Kind
    held: Held
    by: str
    says: str = ""
    published: str = ""
    measured: str = ""
    reason: str = ""
    seeds: int = 0
    explains: bool = False


@dataclass(frozen=True)
class Judged:
    """explained: a contradiction whose cause a run or a calculation shows"""

    entry: Entry
    outcome: Outcome
    evidence: tuple[Evidence, ...] = ()
    explained: bool = False

    @property
    def decided(self) -> bool:
        return self.outcome in ("agrees", "agrees in order or shape", "contradicts", "cannot be compared")

    @property
    def failed(self) -> bool:
        return self.outcome == "contradicts" and not self.explained

    @property
    def open_claims(self) -> tuple[str, ...]:
        """The entry's claims that nothing decides and that are not left out: their numbers."""
        known = {evidence.part for evidence in self.evidence} | set(self.entry.left_out)
        count = len(self.entry.published.claims)
        return tuple(str(i) for i in range(1, count + 1) if str(i) not in known)

    @property
    def word(self) -> str:
        if self.outcome != "contradicts":
            return self.outcome
        return "contradicts, explained" if self.explained else "contradicts, unexplained"

    @property
    def reason(self) -> str:
        """Why, in a line."""
        if self.outcome == "cannot be compared":
            return self.entry.reason
        if self.outcome == "not run yet":
            return ""
        wrong = [one for one in self.evidence if one.held == "contradicted" and not one.explains]
        shown = wrong or [one for one in self.evidence if one.held in ("undecided", "not run yet")][:3]
        return "; ".join(dict.fromkeys(f"{one.part}: {_in_words(one)}" for one in shown))


def _in_words(one: Evidence) -> str:
    beside = (
        f"{one.published} asked, {one.measured} here" if one.published and one.measured else one.measured or one.says
    )
    return f"{beside} ({one.reason})" if one.reason else beside


def judged(entry: Entry, evidence: Sequence[Evidence]) -> Judged:
    """What an entry came to."""
    if entry.comparable == "no":
        return Judged(entry, "cannot be compared", tuple(evidence))
    own = [one for one in evidence if not one.explains]
    if not own:
        no_numbers = not entry.published.numbers
        all_out = len(entry.left_out) >= len(entry.published.claims) and (bool(entry.published.claims) or no_numbers)
        return Judged(entry, "cannot be compared" if all_out else "not bound yet", tuple(evidence))
    known = {one.part for one in own if one.held in ("holds", "contradicted")}
    own = [one for one in own if one.held != "not run yet" or one.part not in known]
    outcome = _outcome(own)
    wrong = {one.part for one in own if one.held == "contradicted"}
    return Judged(entry, outcome, tuple(evidence), explained=bool(wrong) and wrong <= _shown_parts(evidence))


def _shown_parts(evidence: Sequence[Evidence]) -> set[str]:
    """The parts that an experiment or a calculation explains by all that it says of them; others may have been tried in vain."""
    tried: dict[tuple[str, str], set[Held]] = {}
    for one in evidence:
        if one.explains:
            tried.setdefault((one.part, one.by), set()).add(one.held)
    return {part for (part, _), held in tried.items() if "holds" in held and "contradicted" not in held}


def _outcome(own: Sequence[Evidence]) -> Outcome:
    by_kind = {kind: [one.held for one in own if one.kind == kind] for kind in ("order", "value")}
    if "contradicted" in by_kind["order"]:
        return "contradicts"
    known = [one for one in own if one.held in ("holds", "contradicted")]
    if not known:
        return "undecided" if any(one.held == "undecided" for one in own) else "not run yet"
    is_wrong = "contradicted" in by_kind["value"]  # whatever the other numbers come to
    if any(one.held in ("undecided", "not run yet") for one in own if one.kind == "order" or not is_wrong):
        return "undecided"
    if is_wrong:
        return "agrees in order or shape" if by_kind["order"] else "contradicts"
    return "agrees" if by_kind["value"] else "agrees in order or shape"


def came_to(evidence: Sequence[Evidence], part: str) -> Held:
    """What became of a part: one contradiction is enough, and it holds where all that was compared does; longer forms need not be run."""
    held = [one.held for one in evidence if one.part == part and not one.explains]
    worst: tuple[Held, ...] = ("contradicted", "undecided", "holds")
    return next((word for word in worst if word in held), "not run yet")


def of_checks(checks: Sequence[Check], by: str) -> Iterator[Evidence]:
    for check in checks:
        held: Held = "undecided" if check.undecided else "holds" if check.holds else "contradicted"
        shown = _shown(check.published), _shown(check.computed)
        reason = "" if check.holds else check.reason
        yield Evidence(check.part, check.kind, held, by, check.says, *shown, reason, explains=check.explains)
        if check.explained and not check.holds:
            yield Evidence(check.part, check.kind, "holds", by, check.explained, explains=True)


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return number(value)
    if isinstance(value, list | tuple):
        return ", ".join(_shown(part) for part in value)
    return str(value)


def of_claim(finding: claims.Finding, part: str, by: str, *, explains: bool = False, all_run: bool = False) -> Evidence:
    """What a claim of an experiment file came to, for one part.

    all_run: there is a run for everything that the claim asks, so that nothing is missing but a value
    """
    seen = [one for group in finding.parts for one in group.seen if one.spread is not None]
    missing = finding.outcome == "not comparable" or (finding.outcome == "undecided" and not seen)
    held: Held = finding.outcome  # type: ignore[assignment]
    if missing:
        held = "undecided" if all_run else "not run yet"
    # the statement that decides: where one is contradicted that one, else the first
    worst = next((one for one in seen if one.outcome == "contradicted"), seen[0] if seen else None)
    measured = "" if worst is None else _measured(finding.claim, worst)
    seeds = 0 if worst is None or worst.spread is None else worst.spread.n
    says = finding.claim.says or finding.words
    return Evidence(
        part, "value" if is_value(finding.claim, part) else "order", held, by, says, _asked(finding.claim),
        measured, finding.reason, seeds, explains,
    )  # fmt: skip


def _measured(claim: Claim, seen: claims.Seen) -> str:
    """The means of the two that are compared, or the mean with its interval."""
    sides = [(term, term.cell.estimate(term.metric)) for term in seen.statement.terms[:2]]
    known = [estimate.mean for _, estimate in sides if estimate is not None]
    if isinstance(claim.relation, Greater | Ratio | Difference | Order | Trend | Crossing) and len(known) == 2:
        where = seen.statement.words
        shown = f"{number(known[0])} against {number(known[1])}"
        if isinstance(claim.relation, Ratio) and known[1]:
            return f"{number(known[0] / known[1])} ({shown})"
        return f"{where}: {shown}" if isinstance(claim.relation, Order | Trend | Crossing) else shown
    assert seen.spread is not None  # such statements are not asked for
    if isinstance(claim.relation, Mostly):
        return f"{round(seen.spread.mean * seen.spread.n)} of {seen.spread.n} runs"
    return _with_interval(seen.spread.mean, seen.interval, exact=seen.spread.exact)


def is_value(claim: Claim, part: str) -> bool:
    """Whether a claim is about a number of the thesis and not only about an order or a shape.

    Bounds of 0 and 1 alone ask whether there is any at all ("loses packets", "loses none"): no thesis prints those.
    """
    if not part.isdecimal():
        return True
    if isinstance(claim.relation, Bounds):
        return not set(claim.relation.interval) <= {0.0, 1.0, math.inf, -math.inf}
    return isinstance(claim.relation, Near | Curve | Same)


def _asked(claim: Claim) -> str:
    relation = claim.relation
    if isinstance(relation, Near):
        return number(relation.value)
    if isinstance(relation, Bounds):
        low, high = relation.interval
        often = "in most runs " if isinstance(relation, Mostly) else ""
        if math.isinf(low):
            return f"{often}at most {number(high)}"
        return f"{often}at least {number(low)}" if math.isinf(high) else f"{often}{number(low)} to {number(high)}"
    if isinstance(relation, Ratio | Difference):
        return " to ".join(map(number, relation.within))
    return ""


def _with_interval(mean: float, interval: Any, *, exact: bool = False) -> str:
    if interval is None or exact or not math.isfinite(interval.high - interval.low):
        return number(mean)
    return f"{number(mean)} ± {number((interval.high - interval.low) / 2)}"


def of_row(row: published.Row, part: str, by: str, *, ordered: bool) -> Evidence:
    """What one published value came to."""
    held: Held = {"agrees": "holds", "disagrees": "contradicted", "not comparable": "undecided"}[row.outcome]  # type: ignore[assignment]
    if row.measured is None:
        held = "not run yet"
    measured = "" if row.measured is None else _with_interval(row.measured, row.interval)
    kind: Kind = "order" if ordered else "value"
    return Evidence(
        part, kind, held, by, f"{row.metric}, {row.place}", number(row.published), measured, row.reason, row.runs
    )
