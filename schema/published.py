# SPDX-License-Identifier: Apache-2.0
"""A paper's numbers for an experiment: values with their place in the paper, and their claims."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, model_validator

from schema.base import Model, ParamName, Scalar
from schema.claims import PartName
from schema.tolerance import Tolerance, absolute, is_whole


class PublishedValue(Model):
    """One number of the paper and the parameters that it belongs to; `value: null` where the paper's copy has lost it."""

    where: dict[ParamName, Scalar] = {}
    value: float | None


class Published(Model):
    """A table or figure of a paper for one metric.

    source: the paper with the table, figure or page
    unit: the metric's unit, written out so that a reader sees it; another one is refused
    tolerance: how far a measured mean may lie from the published value: "5%" of it, or a number in the metric's unit
    order: whether the means have to stand in the order of the published values
    differs: why a disagreement is known and what the evidence is; it is shown, and does not make `compare` fail
    not_comparable: why none of the values can be compared; they are shown beside what was measured
    times: what the paper's numbers are multiplied by before they are compared, where it counts something else; `because` says why
    decides: the part of a thesis' catalogue whose numbers these are, entry/part
    """

    source: Annotated[str, Field(min_length=1)]
    metric: str
    unit: str | None = None
    tolerance: Tolerance | None = None
    order: bool = False
    values: Annotated[list[PublishedValue], Field(min_length=1)]
    differs: str = ""
    not_comparable: str = ""
    times: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    because: str = ""
    decides: list[PartName] = []

    @model_validator(mode="before")
    @classmethod
    def _numbers(cls, data: Any) -> Any:
        """Whole numbers of the file are values too."""
        if not isinstance(data, dict):
            return data
        rows = data.get("values")
        if isinstance(rows, list):
            rows = [
                {**row, "value": float(row["value"])} if isinstance(row, dict) and is_whole(row.get("value")) else row
                for row in rows
            ]
            data = {**data, "values": rows}
        return {**data, "tolerance": float(data["tolerance"])} if is_whole(data.get("tolerance")) else data

    @model_validator(mode="after")
    def _claims(self) -> Published:
        claims = self.tolerance is not None or self.order
        if (self.times != 1) != bool(self.because):
            raise ValueError("times and because go together: why are the paper's numbers not compared as they are?")
        if self.not_comparable and (claims or self.differs):
            raise ValueError("not_comparable goes with no tolerance, order or differs: nothing is compared")
        if not self.not_comparable and not claims:
            raise ValueError("published values need a tolerance, `order: true`, or not_comparable with the reason")
        if self.order and sum(row.value is not None for row in self.values) < 2:
            raise ValueError("an order needs two values or more")
        self.allowed(1.0)
        return self

    def allowed(self, published: float) -> float | None:
        """How far from `published` a mean may lie, in the metric's unit; None where no tolerance is claimed."""
        if self.tolerance is None:
            return None
        allowed = absolute(self.tolerance, published)
        if allowed is None:
            raise ValueError(
                f"tolerance {self.tolerance!r}: write a share such as 5%, or a number in the metric's unit"
            )
        return allowed
