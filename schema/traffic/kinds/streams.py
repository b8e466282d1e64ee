# SPDX-License-Identifier: Apache-2.0
"""TCP connections: on and off, or transfers that arrive."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from schema.base import NodeName, StartValues
from schema.traffic.entry import BusyPeriods, Sizes, TcpEntry, Times


class OnOff(BusyPeriods, StartValues, TcpEntry):
    """TCP connections that send all they can while on, and nothing while off."""

    kind: Literal["on_off"]
    connections: Annotated[int, Field(ge=1, le=1000)] = 1


class Transfers(StartValues, TcpEntry):
    """TCP transfers that arrive one after the other (FTP): gaps or a count, sizes or lifetimes."""

    kind: Literal["transfers"]
    source: NodeName | Annotated[list[NodeName], Field(min_length=1)] = Field(alias="from")  # type: ignore[assignment]
    destination: NodeName | Annotated[list[NodeName], Field(min_length=1)] = Field(alias="to")  # type: ignore[assignment]
    gap: Times | None = None
    count: Annotated[int, Field(ge=1, le=100_000)] | None = None
    size: Sizes | None = None
    life: Times | None = None

    @model_validator(mode="after")
    def _one_of_each(self) -> Transfers:
        if (self.gap is None) == (self.count is None):
            raise ValueError(
                "give `gap` (arrivals one after the other) or `count` (that many, uniformly over the time)"
            )
        if (self.size is None) == (self.life is None):
            raise ValueError("give `size` or `life` of the transfers, one of them")
        return self

    def sources(self) -> list[str]:
        return list(dict.fromkeys([self.source] if isinstance(self.source, str) else self.source))

    def destinations(self) -> list[str]:
        return list(dict.fromkeys([self.destination] if isinstance(self.destination, str) else self.destination))
