# SPDX-License-Identifier: Apache-2.0
"""A paper's claims against runs: holds, contradicted, undecided, or not comparable and why.

Each statement of a claim is a contrast with a 95 % interval over the seeds (analysis.contrasts). A claim

- holds when every statement's interval lies within its bounds,
- is contradicted when a statement's interval lies wholly outside them; there the intervals are wider (Bonferroni), since one
  of many statements is enough; also where of the two that a statement puts in order the one is known to be above the other by no more than
  what counts as no difference (`level` of the claim),
- is undecided else; `more` says how many seeds more would decide it, if they spread as those so far.

Each of the first two is wrong in at most 5 % of cases. Where no seed changes anything (nothing random is in the experiment) the
numbers decide without an interval, and the outcome says so.

All statements have to hold (an intersection-union test), so *holds* needs no correction for their number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from analysis import relations
from analysis.claim_words import described
from analysis.contrasts import Spread, spread
from analysis.errors import AnalysisError, ClaimError, MissingCellError
from analysis.metrics.absence import why
from analysis.relations import Group, Statement
from analysis.results import Run, parameters, show
from analysis.statistics import CONFIDENCE, Cell, Interval, cells
from schema.claims import Claim

Outcome = Literal["holds", "contradicted", "undecided", "not comparable"]
OUTCOMES: tuple[Outcome, ...] = ("holds", "contradicted", "undecided", "not comparable")
MOST_SEEDS = 10_000
TAIL = (1 - CONFIDENCE) / 2


@dataclass(frozen=True)
class Seen:
    """A statement beside the runs.

    spread, interval: None where there are too few runs
    more: seeds more that would decide it, as far as can be told
    level: contradicted because the one is above the other by no more than the claim's `level`, if at all
    """

    statement: Statement
    spread: Spread | None
    interval: Interval | None
    outcome: Outcome
    more: int | None = None
    level: bool = False


@dataclass(frozen=True)
class Part:
    """One combination of the parameters that a claim leaves open."""

    label: str
    outcome: Outcome
    seen: tuple[Seen, ...] = ()
    reason: str = ""
    more: int | None = None


@dataclass(frozen=True)
class Finding:
    """What became of a claim. known: the file explains the contradiction; more: seeds more for each cell that would decide it."""

    claim: Claim
    outcome: Outcome
    parts: tuple[Part, ...] = ()
    reason: str = ""
    known: bool = False
    more: int | None = None
    words: str = field(default="")

    @property
    def failed(self) -> bool:
        """Whether a test of the paper has to fail for it."""
        return self.outcome == "not comparable" or (self.outcome == "contradicted" and not self.known)


Results = Callable[[str], Sequence[Run]]
"""The runs of another experiment by its name; raises AnalysisError where there are none."""


def none_elsewhere(name: str) -> Sequence[Run]:
    raise ClaimError(f"the runs of {name} are not loaded here; `./warpbed compare` reads them")


def check_all(
    claims: Sequence[Claim], runs: Sequence[Run], elsewhere: Results = none_elsewhere, looks: int = 1
) -> tuple[Finding, ...]:
    return tuple(check(claim, runs, elsewhere, looks) for claim in claims)


def check(claim: Claim, runs: Sequence[Run], elsewhere: Results = none_elsewhere, looks: int = 1) -> Finding:
    """Hold one claim against an experiment's runs.

    looks: how often the claim may be judged while runs are added until it is decided; each look gets its part of the 5 % (Bonferroni)
    """
    description = described(claim)
    try:
        finding = _check(claim, runs, elsewhere, TAIL / looks)
    except AnalysisError as problem:
        return Finding(claim, "not comparable", reason=str(problem), words=description)
    reason, known = finding.reason, False
    if claim.differs and finding.outcome == "contradicted":
        reason, known = "; ".join(part for part in (reason, f"known: {claim.differs}") if part), True
    elif claim.differs and finding.outcome == "holds":
        reason = "; ".join(part for part in (reason, "the file calls it contradicted (differs): take that out") if part)
    return Finding(claim, finding.outcome, finding.parts, reason, known, finding.more, description)


def _check(claim: Claim, runs: Sequence[Run], elsewhere: Results, tail: float) -> Finding:
    known = parameters(runs)
    strange = [name for name in (*claim.where, *claim.parameters) if name not in known]
    if strange:
        raise ClaimError(f"no run has a parameter {', '.join(strange)}; there are {', '.join(known) or 'none'}")
    groups = _groups(claim, runs)
    if not groups:
        raise ClaimError(f"no run has {relations.place(claim.where)}")
    cache: dict[str, Sequence[Cell]] = {}

    def others(name: str) -> Sequence[Cell]:
        if name not in cache:
            cache[name] = cells(elsewhere(name))
        return cache[name]

    parts: list[Part] = []
    lacking: list[str] = []
    for group in groups:
        try:
            alternatives = relations.alternatives(claim, group, others)
        except MissingCellError as problem:
            lacking.append(str(problem))
            continue
        parts.append(_part(group, alternatives, len(groups), tail))
    if not parts:
        raise ClaimError(lacking[0])
    if all(part.outcome == "not comparable" for part in parts):
        raise ClaimError(parts[0].reason)
    return _joined(claim, tuple(parts), lacking, any(run.status == "missing" for run in runs))


def _groups(claim: Claim, runs: Sequence[Run]) -> list[Group]:
    """The cells that the claim is about, by the values of the parameters that it leaves open."""
    groups: dict[tuple[tuple[str, str], ...], list[Cell]] = {}
    named = {*claim.where, *claim.parameters}
    for cell in relations.matching(cells(runs), claim.where):
        open_values = {name: value for name, value in cell.params.items() if name not in named}
        groups.setdefault(tuple((name, show(value)) for name, value in open_values.items()), []).append(cell)
    return [
        Group({name: members[0].params[name] for name, _ in key}, tuple(members)) for key, members in groups.items()
    ]


def _part(group: Group, alternatives: relations.Alternatives, groups: int, tail: float) -> Part:
    judged = [
        [_see(statement, len(alternatives), len(listed) * groups, tail) for statement in listed]
        for listed in alternatives
    ]
    outcomes = [_all(seen) for seen in judged]
    unknown = [seen for listed in judged for seen in listed if seen.outcome == "not comparable"]
    if "holds" in outcomes:
        chosen = judged[outcomes.index("holds")]
        return Part(group.label, "holds", tuple(chosen))
    # the most promising of several is shown
    chosen = min(judged, key=lambda listed: sum(seen.outcome == "contradicted" for seen in listed))
    if all(outcome == "contradicted" for outcome in outcomes):
        return Part(group.label, "contradicted", tuple(chosen))
    if unknown:
        reason = "; ".join(dict.fromkeys(lack(seen.statement) for seen in unknown))
        return Part(group.label, "not comparable", tuple(chosen), reason)
    return Part(group.label, "undecided", tuple(chosen), more=_needed(chosen))


def _all(listed: Sequence[Seen]) -> Outcome:
    outcomes = [seen.outcome for seen in listed]
    for outcome in ("contradicted", "not comparable", "undecided"):
        if outcome in outcomes:
            return outcome
    return "holds"


def _needed(listed: Sequence[Seen]) -> int | None:
    """Seeds more: until all hold, where all means are where they should be; else until the first is contradicted."""
    wrong = [seen.more for seen in listed if seen.outcome == "undecided" and seen.spread and not _inside(seen)]
    if wrong:
        known = [more for more in wrong if more is not None]
        return min(known) if known else None
    waiting = [seen.more for seen in listed if seen.outcome == "undecided"]
    return None if None in waiting else max((more for more in waiting if more is not None), default=None)


def _inside(seen: Seen) -> bool:
    assert seen.spread is not None
    return seen.statement.low <= seen.spread.mean <= seen.statement.high


def _see(statement: Statement, alternatives: int, statements: int, tail: float) -> Seen:
    """A statement's outcome; contradicted at the level that many statements share, held at the one that many alternatives share."""
    seen = spread(statement.terms, statement.constant)
    if seen is None:
        return Seen(statement, None, None, "not comparable")
    low, high = statement.low, statement.high
    narrow, wide = seen.interval(tail / alternatives), seen.interval(tail / statements)
    if narrow is None or wide is None:
        return Seen(statement, seen, None, "undecided", seen.more_for(1.0, tail, MOST_SEEDS))
    if statement.strict:
        holds, against = narrow.low > low and narrow.high < high, wide.high <= low or wide.low >= high
    else:
        holds, against = narrow.low >= low and narrow.high <= high, wide.high < low or wide.low > high
    if holds or against:
        return Seen(statement, seen, narrow, "holds" if holds else "contradicted")
    level = [_see(one, statements, 1, tail) for one in statement.level]
    if level and _all(level) == "holds":
        return Seen(statement, seen, narrow, "contradicted", level=True)
    inside = low <= seen.mean <= high
    distance = min(abs(seen.mean - low), abs(seen.mean - high))
    needs = [seen.more_for(distance, tail / (alternatives if inside else statements), MOST_SEEDS)]
    if level and _all(level) == "undecided" and all(map(_inside, level)):
        needs.append(_needed(level))
    return Seen(statement, seen, narrow, "undecided", min((need for need in needs if need is not None), default=None))


def lack(statement: Statement) -> str:
    """Why a statement has no number."""
    for term in statement.terms:
        if not term.by_seed():
            where = relations.place(term.cell.params)
            if not term.cell.counted:
                return f"no run of {where} is complete and valid"
            reason = why(term.metric, term.cell.counted[0].sources)
            return f"{term.metric} is unknown in the runs of {where}: {reason}"
    return "no seed is in all of its cells"


def _joined(claim: Claim, parts: tuple[Part, ...], lacking: Sequence[str], missing: bool) -> Finding:
    count = {name: [part for part in parts if part.outcome == name] for name in OUTCOMES}
    notes: list[str] = []
    more: int | None = None
    outcome: Outcome
    if count["contradicted"]:
        outcome = "contradicted"
        notes.append(_where("contradicted", count["contradicted"], parts))
        if any(seen.level for part in count["contradicted"] for seen in part.seen):
            notes.append("level: above by no more than the claim lets pass, if at all")
    elif count["not comparable"] or (lacking and missing):
        outcome = "undecided"
        notes += [part.reason for part in count["not comparable"][:3]] + list(lacking[:3] if missing else ())
    elif count["undecided"]:
        outcome = "undecided"
        notes.append(_where("undecided", count["undecided"], parts))
        needs = [part.more for part in count["undecided"]]
        more = None if None in needs else max(need for need in needs if need is not None)
        notes.append(
            f"{more} {'seed' if more == 1 else 'seeds'} more would decide it"
            if more
            else "the mean is too close to the bound for any number of seeds"
        )
    else:
        outcome = "holds"
    if lacking and not missing:
        notes.append(f"{len(lacking)} combinations lack a side")
    if any(seen.spread is not None and seen.spread.exact for part in parts for seen in part.seen):
        notes.append("no seed changes anything: decided without an interval")
    return Finding(claim, outcome, parts, "; ".join(note for note in notes if note), more=more)


def _where(word: str, some: Sequence[Part], parts: Sequence[Part]) -> str:
    if len(parts) == 1:
        return ""
    labels = "; ".join(part.label for part in some[:3]) + (f" and {len(some) - 3} more" if len(some) > 3 else "")
    return f"{word} in {len(some)} of {len(parts)} combinations ({labels})"


def as_data(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """Findings as JSON holds them."""
    return [
        {
            "source": finding.claim.source,
            "claim": finding.words,
            "says": finding.claim.says,
            "outcome": finding.outcome,
            "known": finding.known,
            "reason": finding.reason,
            "seeds_more": finding.more,
            "parts": [
                {"where": part.label, "outcome": part.outcome, "statements": [_statement(seen) for seen in part.seen]}
                for part in finding.parts
            ],
        }
        for finding in findings
    ]


def _statement(seen: Seen) -> Mapping[str, Any]:
    spread_, interval = seen.spread, seen.interval
    return {
        "says": seen.statement.words,
        "outcome": seen.outcome,
        "estimate": None if spread_ is None else spread_.mean,
        "interval": None if interval is None or (spread_ and spread_.exact) else [interval.low, interval.high],
        "bounds": [_finite(seen.statement.low), _finite(seen.statement.high)],
        "seeds": 0 if spread_ is None else spread_.n,
        "paired": bool(spread_ and spread_.paired),
    }


def _finite(bound: float) -> float | None:
    return bound if abs(bound) < float("inf") else None
