# SPDX-License-Identifier: Apache-2.0
"""The schema of traffic: what runs beside the flows, or instead of them. docs/traffic.md explains every kind.

Every kind has a name, the node that sends the data (`from`) and the one that gets it (`to`), a `start` and a `stop`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from base import quantities
from plan.draws import Distribution
from schema import distributions
from schema.base import Cca, Model, Name, NodeName, Rate, Time, checked, with_short_cca

MAX_OBJECTS = 1000
MAX_PACKET_BYTES = 1500
"""The MTU of emulated links; datagrams are never fragmented."""
MIN_PACKET_BYTES = 46
"""IP and UDP headers, 28 bytes, and what a probe carries, 18."""


def _packet(text: str) -> int:
    size = quantities.size_bytes(text)
    if not MIN_PACKET_BYTES <= size <= MAX_PACKET_BYTES:
        raise ValueError(f"{text!r}: a packet has {MIN_PACKET_BYTES} to {MAX_PACKET_BYTES} bytes, IP header included")
    return size


def _above_zero(parse: Callable[[str], Distribution]) -> Callable[[str], object]:
    def check(text: str) -> object:
        found = parse(text)
        if found.mean <= 0:
            raise ValueError(f"{text!r}: must be above 0")
        return found

    return check


Packet = Annotated[str, checked(_packet)]
Times = Annotated[str, checked(_above_zero(distributions.times))]
Sizes = Annotated[str, checked(_above_zero(distributions.sizes))]


class Entry(Model):
    """What all kinds have."""

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
    """Kinds over TCP. `background`: its connections have no records of their own, only its results."""

    cca: Cca
    background: bool = False

    @model_validator(mode="before")
    @classmethod
    def _short_cca(cls, data: Any) -> Any:
        return with_short_cca(data)


class _OnOff(Model):
    on: Times | None = None
    off: Times | None = None

    @model_validator(mode="after")
    def _both(self) -> _OnOff:
        if (self.on is None) != (self.off is None):
            raise ValueError("`on` and `off` come together: busy for one, silent for the other")
        return self


class Cbr(_OnOff, Entry):
    """UDP at a constant bit rate; with `on` and `off` a square wave or Pareto on/off source."""

    kind: Literal["cbr"]
    rate: Rate
    packet: Packet = "1000B"


class Poisson(_OnOff, Entry):
    """UDP with exponential gaps between packets; `rate` is the mean."""

    kind: Literal["poisson"]
    rate: Rate
    packet: Packet = "1000B"


class OnOff(_OnOff, TcpEntry):
    """TCP connections that send all they can while on, and nothing while off."""

    kind: Literal["on_off"]
    connections: Annotated[int, Field(ge=1, le=1000)] = 1


class Transfers(TcpEntry):
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


class Web(TcpEntry):
    """A browser that loads pages from nginx: an HTML file, then its objects over several connections, then a pause."""

    kind: Literal["web"]
    background: Literal[True] = True
    html: Sizes = "30KB"
    objects: Annotated[int, Field(ge=0, le=MAX_OBJECTS)] = 20
    object_size: Sizes = "pareto(25KB, 1.3)"
    connections: Annotated[int, Field(ge=1, le=64)] = 6
    think: Times = "exponential(2s)"


class Video(TcpEntry):
    """A player of adaptive video (DASH-like) from nginx: segments of several rates, a buffer, a rule for the rate."""

    kind: Literal["video"]
    background: Literal[True] = True
    ladder: Annotated[list[Rate], Field(min_length=1, max_length=50)] = [
        "400kbit", "800kbit", "1500kbit", "3mbit", "6mbit",
    ]  # fmt: skip
    segment: Time = "2s"
    buffer: Time = "30s"
    start_after: Annotated[int, Field(ge=1, le=100)] = 2
    abr: Literal["rate", "buffer"] = "rate"

    @model_validator(mode="after")
    def _playable(self) -> Video:
        rates = [quantities.rate_bps(rate) for rate in self.ladder]
        if sorted(set(rates)) != rates:
            raise ValueError("the rates of `ladder` must rise")
        segment, buffer = quantities.delay_ns(self.segment), quantities.delay_ns(self.buffer)
        if segment <= 0 or buffer < segment * (self.start_after + 1):
            raise ValueError(
                f"a buffer of {self.buffer} does not hold {self.start_after + 1} segments of {self.segment}"
                " (`start_after` and the one that is loaded)"
            )
        return self


class PacketPairs(Entry):
    """UDP packet pairs with given input gaps, one after the other; the output gaps are measured (Yu 2009 s4.4)."""

    kind: Literal["packet_pairs"]
    gaps: Annotated[list[Time], Field(min_length=1, max_length=1000)]
    every: Times = "1s"
    packet: Packet = "1000B"


class Ping(Entry):
    """ICMP echo requests: the round-trip time under load."""

    kind: Literal["ping"]
    every: Times = "100ms"
    packet: Packet = "84B"


Traffic = Annotated[
    Cbr | Poisson | OnOff | Transfers | Web | Video | PacketPairs | Ping, Field(discriminator="kind")
]  # fmt: skip


class Starts(Model):
    """When several flows or traffics start: one after the other, or at random times.

    of: their names, or `flows`, `traffic` or `all`
    every: gaps from one start to the next; within: each somewhere, uniformly, in that time after `first`
    order: as listed, or shuffled by the seed
    """

    of: Literal["flows", "traffic", "all"] | Annotated[list[Name], Field(min_length=1)]
    first: Time = "0s"
    every: Times | None = None
    within: Time | None = None
    order: Literal["listed", "shuffled"] = "listed"

    @model_validator(mode="after")
    def _one_way(self) -> Starts:
        if (self.every is None) == (self.within is None):
            raise ValueError("give `every` (one after the other) or `within` (at random in that time)")
        return self
