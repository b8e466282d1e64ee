# SPDX-License-Identifier: Apache-2.0
"""Repeats until a metric's mean is known as closely as the file requires, or until its claims are decided."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from schema.base import Model
from schema.tolerance import Tolerance, absolute, is_whole

MOST = 10_000
DECIDED = "decided"


class Precision(Model):
    """How closely a mean is to be known.

    metric: a metric that is a single number, or a part of one (`./warpbed list metrics`)
    within: half the width of the mean's 95 % interval (Student's t) at most: "2%" of the mean, or a number in the metric's unit
    """

    metric: str
    within: Tolerance

    @model_validator(mode="before")
    @classmethod
    def _numbers(cls, data: Any) -> Any:
        """Whole numbers of the file are values too."""
        if isinstance(data, dict) and is_whole(data.get("within")):
            return {**data, "within": float(data["within"])}
        return data

    @model_validator(mode="after")
    def _readable(self) -> Precision:
        self.allowed(1.0)
        return self

    def allowed(self, mean: float) -> float:
        """Half the width that the interval of this mean may have, in the metric's unit."""
        allowed = absolute(self.within, mean)
        if allowed is None or (allowed == 0 and mean != 0):
            raise ValueError(
                f"within {self.within!r}: write a share such as 2%, or a number in the metric's unit, above 0"
            )
        return allowed


class Repeats(Model):
    """Runs per combination: `least` of them, and more until every metric of `until` is known closely enough, or `most` are done.

    until: `decided` is until each claim of the file holds or is contradicted
    """

    until: Literal["decided"] | Annotated[list[Precision], Field(min_length=1, max_length=20)]
    least: Annotated[int, Field(ge=2, le=MOST)] = 3
    most: Annotated[int, Field(ge=2, le=MOST)] = 30

    @model_validator(mode="before")
    @classmethod
    def _short_until(cls, data: Any) -> Any:
        """`until: {metric: …}` is short for a list of one."""
        short = isinstance(data, dict) and isinstance(data.get("until"), dict)
        return {**data, "until": [data["until"]]} if short else data

    @property
    def precisions(self) -> list[Precision]:
        """Metrics whose means are to be known; none where claims are to be decided."""
        return [] if self.until == DECIDED else list(self.until)  # type: ignore[arg-type]

    @property
    def looks(self) -> int:
        """How often the claims may be judged: rounds at most double the runs."""
        return 1 + math.ceil(math.log2(self.most / self.least)) if self.until == DECIDED else 1

    @model_validator(mode="after")
    def _bounds(self) -> Repeats:
        if self.least > self.most:
            raise ValueError(f"least {self.least} is above most {self.most}")
        return self
