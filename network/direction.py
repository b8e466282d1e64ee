# SPDX-License-Identifier: Apache-2.0
"""One direction of a link: its rate, its buffer, and what happens to packets on the wire.

Pure data and pure functions. Runs both on the controlling host and inside a guest, so it needs the
standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from network.frames import FULL_FRAME_BYTES
from network.impairments import (
    CHANCE_BYTES,
    DROPTAIL,
    FourState,
    GilbertElliott,
    Jitter,
    Queue,
    RateTrace,
    Steps,
    loss_by_size,
)

MOST_DELAY_NS = 3600 * 10**9
"""Of a direction: light takes twenty minutes to Mars, and TCP gives up after fifteen."""


@dataclass(frozen=True)
class Buffer:
    """A drop-tail buffer that holds exactly `size` packets or bytes (frames with their Ethernet header)."""

    size: int
    unit: str  # "packets" or "bytes"

    def packets(self, frame_bytes: int) -> float:
        """How many frames of that length fit."""
        return self.size if self.unit == "packets" else self.size / frame_bytes

    @property
    def full_bytes(self) -> int:
        """What it holds when it is full of the longest frames."""
        return self.size * FULL_FRAME_BYTES if self.unit == "packets" else self.size


@dataclass(frozen=True)
class Direction:
    """One direction of a link.

    rate_bps: bits per second of Ethernet frames, None for as fast as the kernel moves packets; the highest of a rate
        that changes
    buffer: queue in front of the link, None where the rate is None
    delay_ns: propagation delay without its jitter; the longest of a delay that changes
    loss: probability that a packet is lost on the wire, 0 to 1, independent of all others
    varying_rate, varying_delay, varying_loss: how they change; values in bit/s, ns, 0 to 1
    burst_loss: loss with a memory
    bit_errors: bit error rate; a frame is lost with its first wrong bit
    queue: how the buffer is managed
    jitter: random part of the delay
    aggregate_ns: how long packets wait at most for those behind them, with which they arrive together, in order
    reorder: share of packets that overtake all those in flight
    duplicate, corrupt: share of packets that arrive twice, or with one wrong bit
    ack_wait_ns: how long the ACK of a packet waits for that of the next, at the receiver that sends it; None: not at all
    overhead_ns: longest time that a host at the link takes for a packet once the run has started, drawn evenly from 0 on;
        where the delay is timed anyway (network.overhead)
    straight: whether packets go from their node into the wire without a hand-over in between (network.one_event)
    ahead: whether the buffer knows at once when a packet will leave it, and the wire counts from there (network.one_event)
    """

    rate_bps: int | None = None
    buffer: Buffer | None = None
    delay_ns: int = 0
    loss: float = 0.0
    varying_rate: Steps | RateTrace | None = None
    varying_delay: Steps | None = None
    varying_loss: Steps | None = None
    burst_loss: GilbertElliott | FourState | None = None
    bit_errors: float = 0.0
    queue: Queue = DROPTAIL
    jitter: Jitter | None = None
    reorder: float = 0.0
    duplicate: float = 0.0
    corrupt: float = 0.0
    ack_wait_ns: int | None = None
    overhead_ns: int = 0
    aggregate_ns: int = 0
    straight: bool = False
    ahead: bool = False

    def serialisation_ns(self, frame_bytes: int) -> int:
        """Time on the wire of one frame before the run starts, ns; 0 for a trace, whose gaps `idle_ns` knows, and for a policer."""
        rate = self.rate_bps
        if isinstance(self.varying_rate, Steps):
            rate = int(self.varying_rate.values[0])
        elif self.varying_rate is not None or self.polices:
            rate = None
        return frame_bytes * 8 * 10**9 // rate if rate else 0

    def idle_ns(self, frame_bytes: int) -> tuple[int, int]:
        """Shortest and longest time that one frame takes through the empty link before the run starts, ns."""
        delay_ns = self.delay_ns if self.varying_delay is None else int(self.varying_delay.values[0])
        low = high = delay_ns + self.serialisation_ns(frame_bytes)
        if isinstance(self.varying_rate, RateTrace):
            high += (1 + frame_bytes // CHANCE_BYTES) * self.varying_rate.longest_gap_ms * 10**6
        if self.jitter is not None:
            low, high = low + self.jitter.reach_ns[0], high + self.jitter.reach_ns[1]
        if self.reorder:
            low -= delay_ns
        high += self.aggregate_ns
        return max(0, low), high

    def mean_rate_bps(self, start_ns: int, end_ns: int) -> float | None:
        """Mean rate over a stretch of the run, bit/s."""
        if isinstance(self.varying_rate, Steps):
            return self.varying_rate.mean(start_ns, end_ns)
        return self.rate_bps if self.varying_rate is None else self.varying_rate.mean_bps

    def capacity_bytes(self, start_ns: int, end_ns: int) -> float:
        """What the link can send over a stretch of the run; 0 where it has no rate."""
        if isinstance(self.varying_rate, RateTrace):
            return self.varying_rate.bytes_between(start_ns, end_ns)
        return (self.mean_rate_bps(start_ns, end_ns) or 0) * (end_ns - start_ns) / 8e9

    def mean_loss(self, frame_bytes: int, start_ns: int = 0, end_ns: int = 0) -> float:
        """Expected share of frames of that length that are lost over a stretch of the run, as packets come evenly."""
        survival = (1 - self.loss) * (1 - loss_by_size(self.bit_errors, frame_bytes))
        if self.varying_loss is not None:
            survival *= 1 - self.varying_loss.mean(start_ns, end_ns)
        if self.burst_loss is not None:
            survival *= 1 - self.burst_loss.mean
        return 1 - survival

    @property
    def loses(self) -> bool:
        """Whether packets are lost on the wire on purpose."""
        return bool(self.loss or self.bit_errors or self.varying_loss or self.burst_loss)

    @property
    def polices(self) -> bool:
        """Whether the rate is enforced by dropping alone: what conforms passes at once, nothing waits."""
        return self.queue.kind == "policer"

    @property
    def needs_netem(self) -> bool:
        """Whether the wire has anything that netem does, apart from the rate."""
        delay = self.delay_ns > 0 and self.varying_delay is None and not self.own_delay
        return bool(
            delay
            or self.loss
            or self.burst_loss
            or self.jitter
            or self.reorder
            or self.duplicate
            or self.corrupt
            or self.aggregate_ns
        )

    @property
    def fine_delay(self) -> bool:
        """Whether a constant delay has parts of a microsecond, which tc does not tell netem."""
        constant = self.varying_delay is None and self.jitter is None and not self.reorder and not self.aggregate_ns
        return constant and self.delay_ns > 1000 and self.delay_ns % 1000 != 0

    @property
    def is_plain(self) -> bool:
        """Whether nothing happens on the wire that only netem does."""
        draws = self.loss or self.burst_loss or self.duplicate or self.corrupt
        return not (draws or self.jitter or self.reorder or self.aggregate_ns)

    @property
    def without_netem(self) -> bool:
        """Whether the own wire has the constant delay and the rate, too: it does not round them to netem's 64 ns."""
        return self.straight and self.is_plain

    @property
    def own_delay(self) -> bool:
        """Whether a constant delay is the own wire's: netem does not take its parts of a microsecond, or its timer would be
        one more beside that of the processing time."""
        return self.fine_delay or self.overhead_ns > 0 or self.without_netem

    @property
    def needs_own_wire(self) -> bool:
        """Whether the wire has what netem does not know."""
        changes = self.varying_loss or self.varying_delay
        return bool(self.bit_errors or changes or self.fine_delay or self.overhead_ns or self.without_netem)

    @property
    def has_wire(self) -> bool:
        """Whether the direction needs a place of its own: for delay, loss, or the time that sending takes."""
        return self.needs_netem or self.needs_own_wire or self.rate_bps is not None


UNSHAPED = Direction()
"""As fast as the kernel moves packets, and nothing happens on the wire."""

_PARTS: dict[str, tuple[tuple[str, Any], ...]] = {
    "buffer": (("size", Buffer),),
    "queue": (("kind", Queue),),
    "jitter": (("spread_ns", Jitter),),
    "varying_rate": (("at_ns", Steps), ("chance_ms", RateTrace)),
    "varying_delay": (("at_ns", Steps),),
    "varying_loss": (("at_ns", Steps),),
    "burst_loss": (("p13", FourState), ("p", GilbertElliott)),
}
"""What the fields of a Direction are made of, by a name that each of the kinds has."""


def direction_from(data: Mapping[str, Any]) -> Direction:
    """The direction that dataclasses.asdict made plain (lists or tuples alike)."""
    known = dict(data)
    for name, kinds in _PARTS.items():
        part = known.get(name)
        if part is not None:
            kind = next(kind for mark, kind in kinds if mark in part)
            known[name] = kind(**{k: tuple(v) if isinstance(v, list | tuple) else v for k, v in part.items()})
    return Direction(**known)
