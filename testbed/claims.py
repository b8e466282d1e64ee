# SPDX-License-Identifier: Apache-2.0
"""What can be wrong with an experiment file's claims before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from analysis import metrics
from analysis.errors import AnalysisError
from analysis.results import quantity, show
from base import formula
from base.nearest import nearest
from schema.claims import Claim, Crossing, Curve, Order, Sides
from schema.load import Loc
from schema.model import Experiment

Report = Callable[[Loc, str], None]


def check_claims(experiment: Experiment, problem: Report) -> None:
    """Tell `problem` of each metric, parameter and value of a claim that the experiment does not have."""
    values = swept_values(experiment)
    for i, claim in enumerate(experiment.claims):
        for name in claim.metrics:
            try:
                metrics.find(name)
            except AnalysisError as error:
                problem(("claims", i), str(error))
        for name in dict.fromkeys((*claim.where, *claim.parameters)):
            if name not in values:
                problem(("claims", i), f"{name!r} is not a parameter of the sweep; {nearest(name, values)}")
        for name, value in _named_values(claim):
            if name in values and show(value) not in values[name]:
                problem(("claims", i), f"{name} is never {show(value)}; {nearest(show(value), values[name])}")
        _check_numbers(claim, values, i, problem)


def swept_values(experiment: Experiment) -> dict[str, set[str]]:
    """The values that each parameter of the sweep takes, as readers write them."""
    if experiment.sweep is None:
        return {}
    values: dict[str, set[str]] = {name: set() for name in experiment.sweep.parameters}
    for name, listed in experiment.sweep.factorial.items():
        values[name].update(map(show, listed))
    for combination in experiment.sweep.combinations:
        for name, value in combination.items():
            values[name].add(show(value))
    for path in experiment.sweep.paths():
        for name, value in path.items():
            values[name].add(show(value))
    return values


def _named_values(claim: Claim) -> Iterator[tuple[str, Any]]:
    relation = claim.relation
    yield from claim.where.items()
    if isinstance(relation, Sides):
        yield from relation.first.where.items()
        yield from relation.second.where.items()
    if isinstance(relation, Order) and relation.of is not None:
        yield from ((relation.of, value) for value in relation.values or ())


def _check_numbers(claim: Claim, values: Mapping[str, set[str]], i: int, problem: Report) -> None:
    """Names of a formula, and the ends of a crossing, stand for numbers."""
    relation = claim.relation
    if isinstance(relation, Curve):
        for name in formula.names_in(relation.model):
            if name not in values:
                problem(
                    ("claims", i, "curve", "model"),
                    f"{name!r} is not a parameter of the sweep; {nearest(name, values)}",
                )
            elif any(quantity(text) is None for text in values[name]):
                problem(("claims", i, "curve", "model"), f"{name} has values that are no numbers")
    if isinstance(relation, Crossing):
        low, high = (quantity(value) for value in relation.between)
        if low is None or high is None or low >= high:
            problem(
                ("claims", i, "crossing", "between"), f"{relation.between}: write [low, high], two numbers with units"
            )
