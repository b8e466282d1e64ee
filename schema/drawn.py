# SPDX-License-Identifier: Apache-2.0
"""Paths drawn by a seed around a setting: whether a result holds off the point at which it was published.

A value is drawn evenly on a logarithmic scale between value / factor and value × factor. Each parameter has a stream of its own, so that
another parameter, or more paths, change none of those drawn before.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from random import Random
from typing import Annotated

from pydantic import Field, model_validator

from plan.draws import seed_of
from schema.base import Model, ParamName, Scalar
from schema.claims import as_numbers

DIGITS = 3
"""Digits of a drawn value that count: what a reader can type again."""
_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?)(\s*[A-Za-z%]*)")


class Around(Model):
    """value: the thesis' own, a number or a quantity (50mbit); `in`: a longer text in which it stands, with {} in its place."""

    value: str | int | float
    factor: Annotated[float, Field(gt=1, le=100, allow_inf_nan=False)]
    text: Annotated[str, Field(alias="in")] = "{}"

    @model_validator(mode="before")
    @classmethod
    def _numbers(cls, data: object) -> object:
        return as_numbers(data, "factor")

    @model_validator(mode="after")
    def _readable(self) -> Around:
        match = _NUMBER.fullmatch(str(self.value))
        if isinstance(self.value, bool) or match is None or not float(match[1]):
            raise ValueError(
                f"value {self.value!r}: write a number above 0, with its unit where it has one: 50mbit, 48ms, 250p"
            )
        if self.text.count("{}") != 1:
            raise ValueError(f"in {self.text!r}: write {{}} once, where the value stands")
        return self

    @property
    def is_whole(self) -> bool:
        """Packets, flows and bytes are drawn as whole numbers."""
        return isinstance(self.value, int) or str(self.value).endswith("p") or str(self.value).endswith("B")

    def at(self, share: float) -> Scalar:
        """The value at a share, 0 ≤ share < 1, of the way from value / factor to value × factor."""
        match = _NUMBER.fullmatch(str(self.value))
        assert match is not None  # refused before
        drawn = float(match[1]) * self.factor ** (2 * share - 1)
        if self.is_whole:
            whole = max(1, round(drawn))
            return whole if isinstance(self.value, int) else self.text.replace("{}", f"{whole}{match[2]}")
        places = DIGITS - 1 - math.floor(math.log10(drawn))
        rounded = Decimal(repr(round(drawn, places))).normalize()
        return float(rounded) if isinstance(self.value, float) else self.text.replace("{}", f"{rounded:f}{match[2]}")


class Drawn(Model):
    """count paths, the same for the same seed; each is combined with every combination of the other parameters."""

    count: Annotated[int, Field(ge=1, le=1000)] = 10
    seed: Annotated[int, Field(ge=1)]
    around: Annotated[dict[ParamName, Around], Field(min_length=1)]

    def paths(self) -> list[dict[str, Scalar]]:
        streams = {
            name: Random(seed_of(self.seed, "paths", name))  # noqa: S311 (no secrets)
            for name in self.around
        }
        return [
            {name: around.at(streams[name].random()) for name, around in self.around.items()} for _ in range(self.count)
        ]
