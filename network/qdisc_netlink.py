# SPDX-License-Identifier: Apache-2.0
"""Configure the project's own queueing disciplines (warp_rate, warp_wire, warp_red, warp_delack, um_pace): tc does not know them.

The messages are those of rtnetlink(7); long timelines go in several, each appends to the one before.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from base.netlink import CREATE, EXCLUSIVE, NESTED, RTM_NEWQDISC, TC_H_ROOT, TCA_KIND, TCA_OPTIONS, TCMSG, attribute
from network.direction import Buffer
from network.impairments import CHANCE_BYTES, Queue, RateTrace, Steps, byte_survival
from network.rtnetlink import Batch, KernelRefusedError, Request

HANDLE = 0x10000  # 1:
CHILD, CHILD_HANDLE = 0x10001, 0x100000  # parent 1:1 handle 10:
LEVELS = ((TC_H_ROOT, HANDLE), (CHILD, CHILD_HANDLE), (0x100001, 0x200000), (0x200001, 0x300000))
STEPS_PER_MESSAGE = 3000
"""16 bytes each; an attribute holds less than 64 KiB."""

RATE_ANCHOR, RATE_PERIOD, RATE_STEPS, RATE_CHANCES = 1, 2, 3, 4
WIRE_ANCHOR, WIRE_LIMIT, WIRE_SURVIVAL = 1, 2, 3
WIRE_DELAYS, WIRE_DELAY_PERIOD, WIRE_LOSSES, WIRE_LOSS_PERIOD = 4, 5, 6, 7
WIRE_OVERHEADS, WIRE_RATE, WIRE_AHEAD = 8, 9, 10
PACE_RATE, PACE_BURST, PACE_LIMIT, PACE_PACKETS = 1, 2, 3, 4
RED_PARAMS = 1
DELACK_TIME = 1
RED_ECN, RED_GENTLE = 1, 2

_STEP = struct.Struct("=QQ")
_RED = struct.Struct("=6I")
"""min and max in packets, max_p and w_q in units of 2^-32, ns that a packet takes, flags."""

Timeline = Sequence[tuple[int, int]]
"""(ns since the anchor, value), ascending from 0."""


@dataclass(frozen=True)
class OwnQdisc:
    """One of them at an interface: its root, or the child of one that is.

    attributes: those that are sent once, as (type, bytes)
    timelines: attribute type → steps
    plain: options that are no attributes, of the kernel's kinds that have such
    """

    interface: str
    kind: str
    attributes: tuple[tuple[int, bytes], ...]
    timelines: tuple[tuple[int, tuple[tuple[int, int], ...]], ...]
    parent: int = TC_H_ROOT
    handle: int = HANDLE
    plain: bytes = b""

    @property
    def is_scheduled(self) -> bool:
        """Whether anything in it depends on when the run starts."""
        return any(len(steps) > 1 for _, steps in self.timelines)


def rate_qdisc(interface: str, rate: Steps | RateTrace) -> OwnQdisc:
    """A link with a rate that changes."""
    if isinstance(rate, Steps):
        steps = tuple((at, round(bps)) for at, bps in zip(rate.at_ns, rate.values, strict=True))
        period = rate.repeat_ns or 0
        return OwnQdisc(interface, "warp_rate", ((RATE_PERIOD, struct.pack("=Q", period)),), ((RATE_STEPS, steps),))
    chances = [(ms * 10**6, n * CHANCE_BYTES) for ms, n in zip(rate.chance_ms, rate.counts, strict=True)]
    if chances[0][0]:
        chances.insert(0, (0, 0))
    fixed = ((RATE_PERIOD, struct.pack("=Q", rate.repeat_ms * 10**6)), (RATE_CHANCES, b""))
    return OwnQdisc(interface, "warp_rate", fixed, ((RATE_STEPS, tuple(chances)),))


def wire_qdisc(
    interface: str,
    limit_packets: int,
    delay: Steps | None,
    loss: Steps | None,
    bit_error_rate: float,
    rate_bps: int | None = None,
    overhead_ns: int = 0,
    ahead: bool = False,
) -> OwnQdisc:
    """A wire with delay (ns) and loss (0 to 1) that change, bit errors, a rate, and a processing time from the run's start on.

    ahead: whether packets come before they leave the queue in front of the wire
    """
    fixed = [(WIRE_LIMIT, struct.pack("=I", limit_packets))]
    if bit_error_rate:
        # in two steps: a float has 53 bits, and 1 - survival is what must be exact
        survival = (1 << 64) - max(1, round((1 - byte_survival(bit_error_rate)) * 2**64))
        fixed.append((WIRE_SURVIVAL, struct.pack("=Q", survival)))
    if rate_bps is not None:
        fixed.append((WIRE_RATE, struct.pack("=Q", rate_bps)))
    if ahead:
        fixed.append((WIRE_AHEAD, b""))
    timelines: list[tuple[int, tuple[tuple[int, int], ...]]] = []
    if overhead_ns:  # before the run, links are measured as they are
        timelines.append((WIRE_OVERHEADS, ((0, 0), (1, overhead_ns))))
    for steps, kind, period, scale in (
        (delay, WIRE_DELAYS, WIRE_DELAY_PERIOD, 1),
        (loss, WIRE_LOSSES, WIRE_LOSS_PERIOD, 1 << 32),
    ):
        if steps is not None:
            values = tuple((at, round(value * scale)) for at, value in zip(steps.at_ns, steps.values, strict=True))
            timelines.append((kind, values))
            fixed.append((period, struct.pack("=Q", steps.repeat_ns or 0)))
    return OwnQdisc(interface, "warp_wire", tuple(fixed), tuple(timelines))


def pace_qdisc(interface: str, rate_bps: int, burst_bytes: int, buffer: Buffer) -> OwnQdisc:
    """A token bucket with a FIFO below it that gives packets to the wire ahead of time."""
    attributes = [
        (PACE_RATE, struct.pack("=Q", rate_bps // 8)),
        (PACE_BURST, struct.pack("=I", burst_bytes)),
        (PACE_LIMIT, struct.pack("=I", min(buffer.size, 2**32 - 1))),
    ]
    if buffer.unit == "packets":
        attributes.append((PACE_PACKETS, b""))
    return OwnQdisc(interface, "um_pace", tuple(attributes), ())


def warp_red_qdisc(interface: str, queue: Queue, rate_bps: int) -> OwnQdisc:
    """RED in packets in front of a link of that rate."""
    assert queue.min_packets is not None and queue.max_packets is not None and queue.packet_bytes is not None
    assert queue.probability is not None and queue.weight is not None
    packet_ns = max(1, round(queue.packet_bytes * 8e9 / rate_bps))
    shares = (round(queue.probability * 2**32), round(queue.weight * 2**32))
    flags = RED_ECN * queue.ecn | RED_GENTLE * queue.gentle
    params = _RED.pack(queue.min_packets, queue.max_packets, *shares, min(packet_ns, 2**32 - 1), flags)
    return OwnQdisc(interface, "warp_red", ((RED_PARAMS, params),), ())


def below(qdisc: OwnQdisc) -> OwnQdisc:
    """The same, one level further down."""
    parent, handle = LEVELS[LEVELS.index((qdisc.parent, qdisc.handle)) + 1]
    return replace(qdisc, parent=parent, handle=handle)


def delack_qdisc(interface: str, wait_ns: int) -> OwnQdisc:
    """ACKs of every second packet, at the latest after that time."""
    return OwnQdisc(interface, "warp_delack", ((DELACK_TIME, struct.pack("=Q", wait_ns)),), ())


def create(qdisc: OwnQdisc) -> None:
    """Make it in the current namespace.

    Raises KernelRefusedError that names the interface and, in mind of the most likely reason, the module.
    """
    requests, flags = Batch(), CREATE | EXCLUSIVE
    for options in _portions(qdisc):
        requests.add(_change(qdisc, options, flags))
        flags = 0
    try:
        requests.send()
    except KernelRefusedError as error:
        raise KernelRefusedError(error.errno, f"{error.strerror}; is {qdisc.kind}.ko loaded?") from error


def anchor(qdisc: OwnQdisc, start_ns: int) -> None:
    """Let the timelines of a qdisc begin at a time of CLOCK_MONOTONIC."""
    requests = Batch()
    requests.add(_change(qdisc, attribute(RATE_ANCHOR, struct.pack("=Q", start_ns)), 0))
    requests.send()


def _portions(qdisc: OwnQdisc) -> Iterator[bytes]:
    first = qdisc.plain + b"".join(attribute(kind, value) for kind, value in qdisc.attributes)
    for kind, steps in qdisc.timelines:
        for start in range(0, len(steps), STEPS_PER_MESSAGE):
            part = b"".join(_STEP.pack(*step) for step in steps[start : start + STEPS_PER_MESSAGE])
            yield first + attribute(kind, part)
            first = b""
    if first:
        yield first


def _change(qdisc: OwnQdisc, options: bytes, flags: int) -> Request:
    body = TCMSG.pack(0, socket.if_nametoindex(qdisc.interface), qdisc.handle, qdisc.parent, 0)
    body += attribute(TCA_KIND, qdisc.kind.encode() + b"\0") + attribute(TCA_OPTIONS | NESTED, options)
    return Request(RTM_NEWQDISC, flags, body, f"{qdisc.interface} {qdisc.kind}")
