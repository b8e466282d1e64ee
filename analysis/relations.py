# SPDX-License-Identifier: Apache-2.0
"""What a claim's relation says of the cells' means: statements that a contrast lies within bounds.

A group is one combination of the parameters that the claim leaves open. It has alternatives (one, but for `peaked` and `dipped`);
an alternative is true where all its statements are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.contrasts import Term
from analysis.errors import ClaimError, MissingCellError
from analysis.results import quantity, show
from analysis.statistics import Cell
from base import formula
from schema.claims import (
    Bounds,
    Claim,
    Crossing,
    Curve,
    Difference,
    Greater,
    Mostly,
    Near,
    Order,
    Ratio,
    Same,
    Side,
    Sides,
    Trend,
)
from schema.tolerance import Tolerance, absolute

MOST_FLAT = 100
"""Values of a `flat` claim: it compares each two of them."""


@dataclass(frozen=True)
class Statement:
    """low ≤ constant + Σ terms ≤ high; strict: neither bound itself will do.

    words: what it says, for people
    level: where all of these are true instead, the first mean is above the second by too little to speak of, if at all
    """

    words: str
    terms: tuple[Term, ...]
    constant: float = 0.0
    low: float = -math.inf
    high: float = math.inf
    strict: bool = False
    level: tuple[Statement, ...] = ()


Alternatives = list[list[Statement]]
Others = Callable[[str], Sequence[Cell]]
"""Another experiment's cells by its name; raises ClaimError where there are none."""


@dataclass(frozen=True)
class Group:
    """One combination of the parameters left open: their values, its cells, and the cells of all of them."""

    params: Mapping[str, Any]
    cells: tuple[Cell, ...]

    @property
    def label(self) -> str:
        return ", ".join(f"{name}={show(value)}" for name, value in self.params.items())

    def cell(self, where: Mapping[str, Any]) -> Cell:
        candidates = matching(self.cells, where)
        if not candidates:
            raise MissingCellError(f"no run has {place({**self.params, **where})}")
        if len(candidates) > 1:
            raise ClaimError(
                f"{len(candidates)} combinations are {place(where)}; `where` has to name the others' parameters"
            )
        return candidates[0]


def matching(cells: Sequence[Cell], where: Mapping[str, Any]) -> list[Cell]:
    shown = {name: show(value) for name, value in where.items()}
    return [cell for cell in cells if all(show(cell.params.get(name)) == text for name, text in shown.items())]


def place(where: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={show(value)}" for name, value in where.items()) or "all runs"


def alternatives(claim: Claim, group: Group, others: Others) -> Alternatives:
    """What the claim says of a group; raises MissingCellError or ClaimError."""
    relation = claim.relation
    match relation:
        case Greater():
            return [[_greater(claim, relation, group)]]
        case Ratio():
            return [_ratio(claim, relation, group)]
        case Difference():
            a, b = _terms(claim, relation, group)
            low, high = relation.within
            return [[Statement(f"{_names(claim, relation)} apart by", (a, minus(b)), 0.0, low, high)]]
        case Order():
            return [_order(claim, relation, group)]
        case Trend():
            return _trend(claim, relation, group)
        case Crossing():
            return [_crossing(claim, relation, group)]
        case Near():
            return [[_bounded(claim, group, *relation.interval)]]
        case Mostly():  # before what it is a kind of
            term = Term(1.0, group.cell({}), str(claim.metric), within=relation.interval)
            return [[Statement(f"share of the runs in which {claim.metric} is so", (term,), low=0.5, strict=True)]]
        case Bounds():
            return [[_bounded(claim, group, *relation.interval)]]
        case Curve():
            return [[_curve(claim, relation, group)]]
        case Same():
            return [_same(claim, relation, group, others)]


def minus(term: Term, factor: float = 1.0) -> Term:
    return Term(-factor * term.weight, term.cell, term.metric)


def _side(claim: Claim, side: Side, group: Group, more: Mapping[str, Any] | None = None) -> Term:
    metric = side.metric or claim.metric
    assert metric is not None  # the schema asks for one
    return Term(1.0, group.cell({**side.where, **(more or {})}), metric)


def _terms(claim: Claim, sides: Sides, group: Group, more: Mapping[str, Any] | None = None) -> tuple[Term, Term]:
    return _side(claim, sides.first, group, more), _side(claim, sides.second, group, more)


def _name(claim: Claim, side: Side) -> str:
    parts = [side.metric] if side.metric and side.metric != claim.metric else []
    return " ".join([*parts, *([place(side.where)] if side.where else [])])


def _names(claim: Claim, sides: Sides) -> str:
    return f"{_name(claim, sides.first)} and {_name(claim, sides.second)}"


def _greater(claim: Claim, relation: Greater, group: Group) -> Statement:
    a, b = _terms(claim, relation, group)
    factor, constant = _margin(relation.by)
    statement = f"{_name(claim, relation.first)} above {_name(claim, relation.second)}"
    terms = (a, minus(b, 1 + factor))
    return Statement(statement, terms, -constant, low=0.0, strict=True, level=_level(a, b, relation.level))


def _ratio(claim: Claim, relation: Ratio, group: Group) -> list[Statement]:
    a, b = _terms(claim, relation, group)
    low, high = relation.within
    names = f"{_name(claim, relation.first)} / {_name(claim, relation.second)}"
    return [
        Statement(f"{names} ≥ {low:g}", (a, minus(b, low)), low=0.0),
        Statement(f"{names} ≤ {high:g}", (a, minus(b, high)), high=0.0),
    ]


def _order(claim: Claim, relation: Order, group: Group) -> list[Statement]:
    if relation.metrics is not None:
        cell = group.cell({})
        ranked = [(metric, Term(1.0, cell, metric)) for metric in relation.metrics]
    else:
        assert relation.of is not None and relation.values is not None and claim.metric is not None
        of, metric = relation.of, claim.metric
        ranked = [(f"{of}={show(value)}", Term(1.0, group.cell({of: value}), metric)) for value in relation.values]
    return [
        Statement(f"{a} above {b}", (x, minus(y)), low=0.0, strict=True, level=_level(x, y, relation.level))
        for (a, x), (b, y) in itertools.pairwise(ranked)
    ]


def _along(claim: Claim, over: str, group: Group) -> list[tuple[Any, Term]]:
    """The group's cells along a parameter, in the order of its numbers (or, for words, of the runs)."""
    assert claim.metric is not None
    values = {show(cell.params.get(over)): cell.params.get(over) for cell in group.cells}
    if len(values) < len(group.cells):
        raise ClaimError(f"several combinations have one value of {over}; `where` has to name the others' parameters")
    pairs = [(cell.params.get(over), Term(1.0, cell, claim.metric)) for cell in group.cells]
    if all(quantity(value) is not None for value, _ in pairs):
        pairs.sort(key=lambda pair: quantity(pair[0]) or 0.0)
    return pairs


def _trend(claim: Claim, relation: Trend, group: Group) -> Alternatives:
    over = relation.over
    points = _along(claim, over, group)
    if len(points) < (3 if relation.shape in ("peaked", "dipped") else 2):
        raise MissingCellError(f"{len(points)} values of {over}, too few for {relation.shape}")
    first = points[0][1]
    factor, constant = _margin(relation.tolerance)

    def at_least(a: tuple[Any, Term], b: tuple[Any, Term], word: str, slack: float, strict: bool) -> Statement:
        """mean at a − mean at b + slack · tolerance ≥ 0."""
        statement = f"{over}={show(a[0])} {word} {over}={show(b[0])}"
        terms = (a[1], minus(b[1]), *((Term(slack * factor, first.cell, first.metric),) if factor else ()))
        return Statement(statement, terms, slack * constant, low=0.0, strict=strict)

    match relation.shape:
        case "rising":
            steps = [at_least(b, a, "not below", 1.0, strict=False) for a, b in itertools.pairwise(points)]
            return [[*steps, at_least(points[-1], points[0], "above", 0.0, strict=True)]]
        case "falling":
            steps = [at_least(a, b, "not below", 1.0, strict=False) for a, b in itertools.pairwise(points)]
            return [[*steps, at_least(points[0], points[-1], "above", 0.0, strict=True)]]
        case "flat":
            if len(points) > MOST_FLAT:
                raise ClaimError(f"{len(points)} values of {over}; a flat claim compares at most {MOST_FLAT}")
            return [[at_least(a, b, "not below", 1.0, strict=False) for a, b in itertools.permutations(points, 2)]]
        case "peaked":
            ends = (points[0], points[-1])
            return [[at_least(top, end, "above", -1.0, strict=True) for end in ends] for top in points[1:-1]]
        case "dipped":
            ends = (points[0], points[-1])
            return [[at_least(end, low, "above", -1.0, strict=True) for end in ends] for low in points[1:-1]]


def _crossing(claim: Claim, relation: Crossing, group: Group) -> list[Statement]:
    over = relation.over
    low, high = (quantity(value) for value in relation.between)
    values = list(dict.fromkeys(show(cell.params.get(over)) for cell in group.cells))
    numbers = {text: quantity(text) for text in values}
    if low is None or high is None or any(number is None for number in numbers.values()):
        raise ClaimError(f"{over} has values that are no numbers; a crossing needs numbers")
    if low >= high:
        raise ClaimError(f"between {relation.between}: write [low, high]")
    crossings = []
    for text, number in numbers.items():
        assert number is not None
        if low < number < high:
            continue
        a, b = _terms(claim, relation, group, {over: text})
        above = number <= low
        statement = f"{_name(claim, relation.first)} {'above' if above else 'below'} {_name(claim, relation.second)} at {over}={text}"
        terms = (a, minus(b)) if above else (b, minus(a))
        crossings.append(Statement(statement, terms, low=0.0, strict=True))
    sides = {numbers[text] <= low for text in values if not low < (numbers[text] or 0.0) < high}  # type: ignore[operator]
    if sides != {True, False}:
        raise MissingCellError(f"no values of {over} on both sides of {' … '.join(map(show, relation.between))}")
    return crossings


def _only(claim: Claim, group: Group) -> Term:
    assert claim.metric is not None
    return Term(1.0, group.cell({}), claim.metric)


def _bounded(claim: Claim, group: Group, low: float, high: float) -> Statement:
    return Statement(str(claim.metric), (_only(claim, group),), 0.0, low, high)


def _curve(claim: Claim, relation: Curve, group: Group) -> Statement:
    term = _only(claim, group)
    numbers = {name: number for name, raw in term.cell.params.items() if (number := quantity(raw)) is not None}
    try:
        model = formula.value(relation.model, numbers)
    except formula.FormulaError as error:
        raise ClaimError(f"model {relation.model!r}: {error}") from error
    if relation.factor is not None:
        if model <= 0:
            raise ClaimError(
                f"model {relation.model!r} is {model:g} at {place(term.cell.params)}; a factor needs more than 0"
            )
        low, high = model / relation.factor, model * relation.factor
    else:
        allowed = absolute(relation.tolerance if relation.tolerance is not None else 0.0, model) or 0.0
        low, high = model - allowed, model + allowed
    return Statement(f"{claim.metric} where the model says {model:.4g}", (term,), 0.0, low, high)


def _same(claim: Claim, relation: Same, group: Group, others: Others) -> list[Statement]:
    here = _only(claim, group)
    cells = others(relation.experiment)
    names = {name for cell in cells for name in cell.params}
    where = {name: value for name, value in {**here.cell.params, **relation.where}.items() if name in names}
    there = Term(1.0, Group({}, tuple(cells)).cell(where), here.metric)
    return list(_alike(here, there, relation.tolerance, f"that of {relation.experiment}"))


def _level(a: Term, b: Term, tolerance: Tolerance) -> tuple[Statement, ...]:
    """What contradicts that a's mean is above b's by more than that."""
    return _alike(a, b, tolerance, "the other")[:1] if absolute(tolerance, 1.0) else ()


def _alike(a: Term, b: Term, tolerance: Tolerance, name: str) -> tuple[Statement, Statement]:
    """a's mean is b's within a share of it, or within a number. name: of b"""
    factor, constant = _margin(tolerance)
    return (
        Statement(f"not above {name}", (a, minus(b, 1 + factor)), -constant, high=0.0),
        Statement(f"not below {name}", (a, minus(b, 1 - factor)), constant, low=0.0),
    )


def _margin(tolerance: Tolerance) -> tuple[float, float]:
    """A tolerance as (share, constant)."""
    if isinstance(tolerance, str):
        return absolute(tolerance, 1.0) or 0.0, 0.0
    return 0.0, float(tolerance)
