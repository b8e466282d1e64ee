# SPDX-License-Identifier: Apache-2.0
"""A claim in one line for people."""

from __future__ import annotations

from analysis.relations import place
from analysis.results import show
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
    Trend,
)
from schema.tolerance import Tolerance


def described(claim: Claim) -> str:
    """Metric, relation and fixed parameters."""
    head = f"{claim.metric}: " if claim.metric else ""
    tail = f" where {place(claim.where)}" if claim.where else ""
    return f"{head}{_relation(claim)}{tail}"


def _relation(claim: Claim) -> str:
    match claim.relation:
        case Greater(first=first, second=second, by=by, level=level):
            return f"{_side(first)} > {_side(second)}{f' by {_amount(by)}' if by else ''}{_level(level)}"
        case Ratio(first=first, second=second, within=within):
            return f"{_side(first)} / {_side(second)} in {within[0]:g} … {within[1]:g}"
        case Difference(first=first, second=second, within=within):
            return f"{_side(first)} − {_side(second)} in {within[0]:g} … {within[1]:g}"
        case Order(of=of, values=values, metrics=metrics, level=level):
            listed = " > ".join(map(show, values or metrics or [])) + _level(level)
            return f"{of}: {listed}" if of else listed
        case Trend(over=over, shape=shape, tolerance=tolerance):
            return f"{shape} over {over}{f' (tolerance {_amount(tolerance)})' if tolerance else ''}"
        case Crossing(first=first, second=second, over=over, between=between):
            return (
                f"{_side(first)} falls below {_side(second)} between {over}={show(between[0])} and {show(between[1])}"
            )
        case Near(value=value, factor=factor, tolerance=tolerance):
            return (
                f"within a factor of {factor:g} of {value:g}" if factor else f"{value:g} ± {_amount(tolerance or 0.0)}"
            )
        case Curve(model=model, factor=factor, tolerance=tolerance):
            return f"{model} {f'within a factor of {factor:g}' if factor else f'± {_amount(tolerance or 0.0)}'}"
        case Same(experiment=experiment, where=where, tolerance=tolerance):
            there = f" at {place(where)}" if where else ""
            return f"the same as in {experiment}{there} ± {_amount(tolerance)}"
        case Bounds(min=least, max=most) as relation:
            often = "in most runs " if isinstance(relation, Mostly) else ""
            if least is None:
                return f"{often}≤ {most:g}"
            return f"{often}≥ {least:g}" if most is None else f"{often}{least:g} … {most:g}"


def _side(side: Side) -> str:
    parts = [side.metric] if side.metric else []
    return " ".join([*parts, *([place(side.where)] if side.where else [])])


def _level(tolerance: Tolerance) -> str:
    return f" (level within {_amount(tolerance)})" if tolerance else ""


def _amount(tolerance: Tolerance) -> str:
    return tolerance if isinstance(tolerance, str) else f"{tolerance:g}"
