# SPDX-License-Identifier: Apache-2.0
"""Claims: what a paper says of its results, as relations between the means of a sweep's cells.

A claim names one relation. It is about each combination of the sweep's parameters that neither `where` nor the relation
itself names. docs/claims.md explains each relation; analysis.claims decides them.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from base.formula import FormulaError, names_in
from schema import patterns
from schema.base import Model, Name, ParamName, Scalar
from schema.tolerance import Tolerance, absolute, is_whole

Where = dict[ParamName, Scalar]
Number = Annotated[float, Field(allow_inf_nan=False)]
PartName = Annotated[str, Field(pattern=patterns.PART)]
"""Of a thesis' catalogue: entry/part."""
Values = Annotated[list[Scalar], Field(min_length=2, max_length=1000)]


def as_numbers(data: Any, *names: str) -> Any:
    """Whole numbers of the file are values too, alone or in a list."""
    if not isinstance(data, dict):
        return data
    changed: dict[str, Any] = {}
    for name in names:
        value: Any = data.get(name)
        if is_whole(value):
            changed[name] = float(value)
        elif isinstance(value, list):
            changed[name] = [float(item) if is_whole(item) else item for item in value]
    return {**data, **changed}


def _checked_share(name: str, tolerance: Tolerance | None) -> None:
    if tolerance is not None and absolute(tolerance, 1.0) is None:
        raise ValueError(
            f"{name} {tolerance!r}: write a share such as 5%, or a number in the metric's unit, not below 0"
        )


class Interval(Model):
    """low, high: both ends belong to it."""

    within: Annotated[list[Number], Field(min_length=2, max_length=2)]

    @model_validator(mode="before")
    @classmethod
    def _numbers(cls, data: Any) -> Any:
        return as_numbers(data, "within")

    @model_validator(mode="after")
    def _in_order(self) -> Interval:
        if self.within[0] > self.within[1]:
            raise ValueError(f"within {self.within}: write [low, high]")
        return self


class Side(Model):
    """One of the two that are compared: values of parameters, or another metric of the same runs, or both."""

    where: Where = {}
    metric: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _short(cls, data: Any) -> Any:
        """`{cca: medley}` is short for `{where: {cca: medley}}`; `metric` is no parameter."""
        if isinstance(data, dict) and "where" not in data:
            return {
                "where": {key: value for key, value in data.items() if key != "metric"},
                **{key: value for key, value in data.items() if key == "metric"},
            }
        return data

    @model_validator(mode="after")
    def _something(self) -> Side:
        if not self.where and self.metric is None:
            raise ValueError("a side needs a parameter's value or a metric")
        return self


class Sides(Model):
    first: Side
    second: Side

    @model_validator(mode="after")
    def _two(self) -> Sides:
        if self.first == self.second:
            raise ValueError("first and second are the same")
        if set(self.first.where) != set(self.second.where):
            raise ValueError("first and second name different parameters; give each a value on both sides")
        return self


class Greater(Sides):
    """first's mean is greater than second's.

    by: at least so much, a share of second's mean or a number
    level: where first's mean is not known to be greater, and is known to be greater by at most so much, the claim is contradicted
    """

    by: Tolerance = 0.0
    level: Tolerance = 0.0

    @model_validator(mode="before")
    @classmethod
    def _numbers(cls, data: Any) -> Any:
        return as_numbers(data, "by", "level")

    @model_validator(mode="after")
    def _readable(self) -> Greater:
        _checked_share("by", self.by)
        _checked_share("level", self.level)
        if absolute(self.by, 1.0) and absolute(self.level, 1.0):
            raise ValueError("write by or level: what has to be greater by an amount is contradicted below it")
        return self


class Ratio(Sides, Interval):
    """first's mean divided by second's lies within; second's is positive."""


class Difference(Sides, Interval):
    """first's mean less second's lies within, in the metric's unit."""


class Order(Model):
    """The means fall along `values` of the parameter `of`, or along `metrics`: the greatest first.

    level: as in `greater`, of each two neighbours
    """

    of: ParamName | None = None
    values: Values | None = None
    metrics: Annotated[list[str], Field(min_length=2, max_length=100)] | None = None
    level: Tolerance = 0.0

    @model_validator(mode="before")
    @classmethod
    def _numbers(cls, data: Any) -> Any:
        return as_numbers(data, "level")

    @model_validator(mode="after")
    def _one_kind(self) -> Order:
        _checked_share("level", self.level)
        if (self.of is None) != (self.values is None) or (self.of is None) == (self.metrics is None):
            raise ValueError("an order needs `of` and `values`, or `metrics`")
        listed = self.values or self.metrics or []
        if len(set(map(repr, listed))) != len(listed):
            raise ValueError("an order names each value once")
        return self


class Trend(Model):
    """How the mean goes as the parameter `over` grows.

    shape: rising or falling (each step, and from the first value to the last); flat (no two means further apart than
    the tolerance); peaked or dipped (one within is above, or below, both ends by more than the tolerance)
    tolerance: how far a step may go the other way: a share of the mean at the first value, or a number in the metric's unit
    """

    over: ParamName
    shape: Literal["rising", "falling", "flat", "peaked", "dipped"]
    tolerance: Tolerance = 0.0

    @model_validator(mode="before")
    @classmethod
    def _numbers(cls, data: Any) -> Any:
        return as_numbers(data, "tolerance")

    @model_validator(mode="after")
    def _readable(self) -> Trend:
        _checked_share("tolerance", self.tolerance)
        if self.shape == "flat" and absolute(self.tolerance, 1.0) == 0:
            raise ValueError("flat needs a tolerance above 0: no two means are equal")
        return self


class Crossing(Sides):
    """first is above second up to the first value of `between`, and below it from the second value on."""

    over: ParamName
    between: Annotated[list[Scalar], Field(min_length=2, max_length=2)]


class Near(Model):
    """A published value: the mean lies within a factor of it, or within a tolerance around it."""

    value: Number
    factor: Annotated[Number, Field(gt=1)] | None = None
    tolerance: Tolerance | None = None

    @model_validator(mode="before")
    @classmethod
    def _numbers(cls, data: Any) -> Any:
        return as_numbers(data, "value", "factor", "tolerance")

    @model_validator(mode="after")
    def _one_way(self) -> Near:
        if (self.factor is None) == (self.tolerance is None):
            raise ValueError("write factor or tolerance, one of them")
        if self.factor is not None and self.value <= 0:
            raise ValueError("a factor needs a value above 0")
        _checked_share("tolerance", self.tolerance)
        return self

    @property
    def interval(self) -> tuple[float, float]:
        if self.factor is not None:
            return self.value / self.factor, self.value * self.factor
        allowed = absolute(self.tolerance if self.tolerance is not None else 0.0, self.value) or 0.0
        return self.value - allowed, self.value + allowed


class Curve(Model):
    """The mean follows a model: a formula of the sweep's parameters in base units (bit/s, s, bytes, packets)."""

    model: Annotated[str, Field(min_length=1, max_length=500)]
    tolerance: Tolerance | None = None
    factor: Annotated[Number, Field(gt=1)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _numbers(cls, data: Any) -> Any:
        return as_numbers(data, "tolerance", "factor")

    @model_validator(mode="after")
    def _readable(self) -> Curve:
        try:
            names_in(self.model)
        except FormulaError as error:
            raise ValueError(f"model {self.model!r}: {error}") from error
        if (self.factor is None) == (self.tolerance is None):
            raise ValueError("write factor or tolerance, one of them")
        _checked_share("tolerance", self.tolerance)
        return self


class Same(Model):
    """The mean is the one of another experiment's cell with equal parameters (`where` sets those that differ there)."""

    experiment: Name
    where: Where = {}
    tolerance: Tolerance

    @model_validator(mode="before")
    @classmethod
    def _numbers(cls, data: Any) -> Any:
        return as_numbers(data, "tolerance")

    @model_validator(mode="after")
    def _readable(self) -> Same:
        _checked_share("tolerance", self.tolerance)
        return self


class Bounds(Model):
    """The mean is at least min, at most max."""

    min: Number | None = None
    max: Number | None = None

    @model_validator(mode="before")
    @classmethod
    def _numbers(cls, data: Any) -> Any:
        return as_numbers(data, "min", "max")

    @model_validator(mode="after")
    def _one_at_least(self) -> Bounds:
        low, high = self.interval
        if math.isinf(low) and math.isinf(high):
            raise ValueError("write min, max or both")
        if low > high:
            raise ValueError(f"min {low:g} is above max {high:g}")
        return self

    @property
    def interval(self) -> tuple[float, float]:
        return -math.inf if self.min is None else self.min, math.inf if self.max is None else self.max


class Mostly(Bounds):
    """In more than half of the runs the metric is at least min, at most max: what a figure of one typical run says."""


RELATIONS = (
    "greater",
    "ratio",
    "difference",
    "order",
    "trend",
    "crossing",
    "near",
    "curve",
    "same",
    "bounds",
    "mostly",
)


class Claim(Model):
    """One claim of a paper.

    source: the paper with the table, figure or page
    metric: what the relation is about (`./warpbed list metrics`)
    where: parameters that are fixed; the relation has to hold for each value of the others
    says: the claim in words of one's own, for readers
    differs: why a contradiction is known, and what the evidence is; it is shown, and does not make `compare` fail
    decides: the parts of a thesis' catalogue that it decides, entry/part (schema.catalogue)
    explains: parts that another experiment contradicts, and that come out where this file's setting is changed as its title says
    off_point: parts whose direction it asks for on paths drawn around the thesis' own; it decides nothing of them
    choice: entry/number of a sentence of the entry's `open`; the values that the claim leaves open are choices for what it says
    """

    source: Annotated[str, Field(min_length=1)]
    metric: str | None = None
    where: Where = {}
    says: str = ""
    differs: str = ""
    decides: list[PartName] = []
    explains: list[PartName] = []
    off_point: list[PartName] = []
    choice: list[PartName] = []
    greater: Greater | None = None
    ratio: Ratio | None = None
    difference: Difference | None = None
    order: Order | None = None
    trend: Trend | None = None
    crossing: Crossing | None = None
    near: Near | None = None
    curve: Curve | None = None
    same: Same | None = None
    bounds: Bounds | None = None
    mostly: Mostly | None = None

    @model_validator(mode="after")
    def _one_relation(self) -> Claim:
        names = [name for name in RELATIONS if getattr(self, name) is not None]
        if len(names) != 1:
            raise ValueError(f"a claim has one relation ({', '.join(RELATIONS)}), not {', '.join(names) or 'none'}")
        if self.metric is None and any(metric is None for metric in self._own_metrics()):
            raise ValueError("a claim needs a metric, its own or one on each side")
        if (self.decides or self.explains) and (self.off_point or self.choice):
            raise ValueError(
                "a claim that decides or explains an entry is about the thesis' setting: give off_point and choice one of its own"
            )
        twice = set(self.where) & set(self.parameters)
        if twice:
            raise ValueError(f"where and the relation both name {', '.join(sorted(twice))}")
        return self

    @property
    def relation(self) -> Greater | Ratio | Difference | Order | Trend | Crossing | Near | Curve | Same | Bounds:
        side = next(part for name in RELATIONS if (part := getattr(self, name)) is not None)
        assert isinstance(side, Greater | Ratio | Difference | Order | Trend | Crossing | Near | Curve | Same | Bounds)
        return side

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameters whose values the relation itself says."""
        relation = self.relation
        names = list(relation.first.where) if isinstance(relation, Sides) else []
        if isinstance(relation, Trend | Crossing):
            names.append(relation.over)
        if isinstance(relation, Order) and relation.of is not None:
            names.append(relation.of)
        return tuple(names)

    @property
    def metrics(self) -> tuple[str, ...]:
        """All metrics that it is about."""
        named = (metric or self.metric for metric in self._own_metrics())
        return tuple(dict.fromkeys(name for name in named if name is not None))

    def _own_metrics(self) -> list[str | None]:
        relation = self.relation
        if isinstance(relation, Sides):
            return [relation.first.metric, relation.second.metric]
        if isinstance(relation, Order) and relation.metrics is not None:
            return list(relation.metrics)
        return [None]


class Guard(Model):
    """A bound of our own against regressions: each run that counts keeps to it. It says nothing of any paper."""

    metric: str
    where: Where = {}
    min: float | None = None
    max: float | None = None
    equals: Scalar | None = None
    within: Annotated[list[float], Field(min_length=2, max_length=2)] | None = None
    note: str | None = None
