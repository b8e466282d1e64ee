# SPDX-License-Identifier: Apache-2.0
"""What the kinds of traffic are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from base import quantities
from network.frames import IP_UDP_HEADER_BYTES, MTU_BYTES
from plan.draws import Distribution
from schema import distributions
from schema.base import Cca, Model, Name, NodeName, Time, checked, with_short_cca

MAX_PACKET_BYTES = MTU_BYTES
"""Datagrams are never fragmented."""
MIN_PACKET_BYTES = IP_UDP_HEADER_BYTES + 18
"""IP and UDP headers, and what a probe carries, 18 bytes."""


def _packet(text: str) -> int:
    size = quantities.size_bytes(text)
    if not MIN_PACKET_BYTES <= size <= MAX_PACKET_BYTES:
        raise ValueError(f"{text!r}: a packet has {MIN_PACKET_BYTES} to {MAX_PACKET_BYTES} bytes, IP header included")
    return size


def _above_zero(parse: Callable[[str], Distribution]) -> Callable[[str], object]:
    def check(text: str) -> object:
        distribution = parse(text)
        if distribution.mean <= 0:
            raise ValueError(f"{text!r}: must be above 0")
        return distribution

    return check


Packet = Annotated[str, checked(_packet)]
Times = Annotated[str, checked(_above_zero(distributions.times))]
Sizes = Annotated[str, checked(_above_zero(distributions.sizes))]


class Entry(Model):
    """What all kinds have."""

    data_comes_from_the_server: ClassVar[bool] = False
    """Whether `from` is the node that waits for connections, as with HTTP."""

    name: Name | None = None
    source: NodeName = Field(alias="from")
    destination: NodeName = Field(alias="to")
    start: Time = "0s"
    stop: Time | None = None

    @model_validator(mode="after")
    def _ends_after_start(self) -> Entry:
        if self.stop is not None and quantities.delay_ns(self.stop) <= quantities.delay_ns(self.start):
            raise ValueError(f"stop {self.stop} is not after start {self.start}")
        return self

    def sources(self) -> list[str]:
        return [self.source]

    def destinations(self) -> list[str]:
        return [self.destination]


class TcpEntry(Entry):
    """Kinds over TCP. `background`: its connections have no records of their own, only its results.

    exactly: it starts at `start` to the nanosecond, also where flows or others do
    """

    cca: Cca
    background: bool = False
    exactly: bool | None = None

    @model_validator(mode="before")
    @classmethod
    def _short_cca(cls, data: Any) -> Any:
        return with_short_cca(data)


class BusyPeriods(Model):
    on: Times | None = None
    off: Times | None = None

    @model_validator(mode="after")
    def _both(self) -> BusyPeriods:
        if (self.on is None) != (self.off is None):
            raise ValueError("`on` and `off` come together: busy for one, silent for the other")
        return self
