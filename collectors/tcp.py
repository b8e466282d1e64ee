# SPDX-License-Identifier: Apache-2.0
"""What a TCP connection did, from what its ends saw: retransmissions, first arrivals, RTT samples."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from collectors.packets import ACK, SYN, Array, Packets

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Connection:
    """A connection's four numbers as its client (the flow's source) has them, and its initial sequence number."""

    source: int
    source_port: int
    destination: int
    destination_port: int
    start_ns: int
    initial_seq: int


def connections(packets: Packets, server_port: int) -> list[Connection]:
    """Connections to a server's port in the order of their first SYN."""
    opening = (packets.flags & (SYN | ACK) == SYN) & (packets.destination_port == server_port)
    found: dict[tuple[int, int], Connection] = {}
    for i in np.flatnonzero(opening):
        key = (int(packets.source[i]), int(packets.source_port[i]))
        found.setdefault(
            key,
            Connection(*key, int(packets.destination[i]), server_port, int(packets.time_ns[i]), int(packets.seq[i])),
        )
    return list(found.values())


def forward(packets: Packets, c: Connection) -> Packets:
    """Packets from the client to the server."""
    return packets.select(
        (packets.source == c.source)
        & (packets.source_port == c.source_port)
        & (packets.destination == c.destination)
        & (packets.destination_port == c.destination_port)
    )


def backward(packets: Packets, c: Connection) -> Packets:
    """Packets from the server to the client."""
    return packets.select(
        (packets.source == c.destination)
        & (packets.source_port == c.destination_port)
        & (packets.destination == c.source)
        & (packets.destination_port == c.source_port)
    )


def relative(numbers: Array, initial: int) -> Array:
    """Sequence or acknowledgment numbers as bytes since the initial number, unwrapped past 2^32."""
    if not len(numbers):
        return numbers
    steps = np.diff(numbers, prepend=initial)
    return np.cumsum((steps + 2**31) % 2**32 - 2**31)


@dataclass(frozen=True)
class Sent:
    """Data packets as they left the sender. `start` and `end` count the stream's bytes from 0."""

    time_ns: Array
    wire_bytes: Array
    start: Array
    end: Array
    again_bytes: Array  # how many of the packet's bytes had been sent before

    @property
    def is_retransmission(self) -> Bools:
        return self.again_bytes > 0


def sent(packets: Packets, c: Connection) -> Sent:
    """The data that the client sent, from a capture beside it."""
    out = forward(packets, c)
    start = relative(out.seq, c.initial_seq) - 1
    data = out.payload_bytes > 0
    time_ns, wire, start, payload = out.time_ns[data], out.wire_bytes[data], start[data], out.payload_bytes[data]
    end = start + payload
    highest = _before(np.maximum.accumulate(end)) if len(end) else end
    return Sent(time_ns, wire, start, end, np.clip(highest - start, 0, payload))


def _before(column: Array) -> Array:
    return np.concatenate(([0], column[:-1])).astype(np.int64)


def first_arrivals(packets: Packets, c: Connection) -> tuple[Array, Array]:
    """(time_ns, new bytes) of every data packet that reached the server: bytes that had not arrived before."""
    data = sent(packets, c)
    new = data.end - data.start
    highest = _before(np.maximum.accumulate(data.end)) if len(data.end) else data.end
    holes: list[tuple[int, int]] = []
    for i in np.flatnonzero(data.start != highest):
        start, end, top = int(data.start[i]), int(data.end[i]), int(highest[i])
        if start > top:
            holes.append((top, start))
            continue
        filled = _fill(holes, start, min(end, top))
        new[i] = filled + max(0, end - top)
    return data.time_ns, new


def _fill(holes: list[tuple[int, int]], start: int, end: int) -> int:
    """Take [start, end) out of the sorted holes; returns how many bytes of it were in holes."""
    first = bisect_right(holes, (start, start)) - 1
    if first < 0 or holes[first][1] <= start:
        first += 1
    last = bisect_left(holes, (end, end))
    filled, rest = 0, []
    for low, high in holes[first:last]:
        left, right = max(low, start), min(high, end)
        filled += right - left
        rest += [(a, b) for a, b in ((low, left), (right, high)) if a < b]
    holes[first:last] = rest
    return filled


@dataclass(frozen=True)
class Acks:
    """Acknowledgments as they reached the sender. `rtt_ns` is -1 where the sample would be ambiguous."""

    time_ns: Array
    ack: Array
    rtt_ns: Array
    sacked_bytes: Array
    duplicate: Bools


def acks(packets: Packets, c: Connection, data: Sent) -> Acks:
    """The server's acknowledgments with RTT samples after Karn: none across a retransmission."""
    back = backward(packets, c)
    back = back.select((back.flags & ACK > 0) & (back.flags & SYN == 0))
    number = relative(back.ack, c.initial_seq) - 1
    highest = _before(np.maximum.accumulate(number)) if len(number) else number
    fresh = ~data.is_retransmission
    ends, times = data.end[fresh], data.time_ns[fresh]
    again = np.sort(data.start[data.is_retransmission])
    index = np.searchsorted(ends, number)
    index_safe = np.minimum(index, max(len(ends) - 1, 0))
    matched = (number > highest) & (index < len(ends))
    if len(ends):
        matched &= ends[index_safe] == number
    matched &= np.searchsorted(again, number) == np.searchsorted(again, highest)
    rtt = np.full(len(number), -1, dtype=np.int64)
    if len(ends):
        rtt[matched] = back.time_ns[matched] - times[index_safe[matched]]
    outstanding = np.concatenate(([0], np.maximum.accumulate(data.end)))[
        np.searchsorted(data.time_ns, back.time_ns, side="right")
    ]
    duplicate = (number == highest) & (back.payload_bytes == 0) & (outstanding > number) & (number > 0)
    return Acks(back.time_ns, number, rtt, back.sacked_bytes, duplicate)
