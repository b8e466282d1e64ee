# SPDX-License-Identifier: Apache-2.0
"""The registry of metrics: what an experiment file may name, with unit and definition.

A metric is a function of a run's records, registered by the decorator; its docstring is its definition and ends in
a line `Source: …`. Adding one means adding a function.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from analysis.errors import UnknownMetricError
from analysis.metrics.needs import Need
from analysis.metrics.run import RunRecords

Better = Literal["higher", "lower", "neither"]
Compute = Callable[[RunRecords], Any]


@dataclass(frozen=True)
class Metric:
    name: str
    unit: str
    label: str
    better: Better
    keyed: str  # what the parts of a value that is not a single number are named by, "" for a number
    description: str
    source: str
    compute: Compute
    needs: tuple[Need, ...] = ()


REGISTRY: dict[str, Metric] = {}


def metric(
    name: str, *, unit: str, label: str, better: Better = "neither", keyed: str = "", needs: tuple[Need, ...] = ()
) -> Callable[[Compute], Compute]:
    """Register the decorated function under `name`; needs: the quantities that it cannot do without."""

    def register(function: Compute) -> Compute:
        if name in REGISTRY:
            raise ValueError(f"metric {name} is defined twice")
        definition, _, source = inspect.getdoc(function).partition("\nSource: ")  # type: ignore[union-attr]
        if not source:
            raise ValueError(f"metric {name}: its docstring has no line 'Source: …'")
        description = " ".join(definition.split())
        REGISTRY[name] = Metric(
            name, unit, label, better, keyed, description, " ".join(source.split()), function, needs
        )
        return function

    return register


def find(name: str) -> Metric:
    """The metric that `name` is or is a part of (`smoothness_cv.1`, `flows.f1.goodput_mbps`)."""
    head, _, part = name.partition(".")
    definition = REGISTRY.get(head)
    if definition is None:
        near = difflib.get_close_matches(head, REGISTRY, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(REGISTRY)}"
        raise UnknownMetricError(f"no metric is called {head!r}; {hint}")
    if part and not definition.keyed:
        raise UnknownMetricError(f"{head} is a single number, it has no part {part!r}; write {head}")
    if definition.keyed and not part:
        raise UnknownMetricError(f"{head} has one value per {definition.keyed}; write {head}.<{definition.keyed}>")
    return definition


def lookup(metrics: dict[str, Any], name: str) -> Any:
    """The value that `name` stands for in a run's metrics, None where the run has none."""
    head, _, part = name.partition(".")
    value = metrics.get(head)
    if not part or value is None:
        return value
    if isinstance(value, list):  # flows: names hold dots themselves ("bulk.2"), the field is what follows the last
        flow, _, field = part.rpartition(".")
        return next((row.get(field) for row in value if row.get("flow") == flow), None)
    return value.get(part) if isinstance(value, dict) else None
