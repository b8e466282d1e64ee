# SPDX-License-Identifier: Apache-2.0
"""The RTTs of full packets sent once, from a capture at the sender alone: nothing of what its stack or a module says."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Iterator, Sequence

from tests.harness.harness import Hook

OPTION_SACK, OPTION_END, OPTION_NOTHING = 5, 0, 1
MODULUS = 1 << 32


@dataclasses.dataclass(frozen=True)
class Segment:
    """A TCP segment; `sacks` are the ranges that its SACK option names.

    `t_s` counts from the second in which the first one left, so that a float holds nanoseconds.
    """

    t_s: float
    port: int
    destination: int
    seq: int
    ack: int
    length: int
    sacks: tuple[tuple[int, int], ...]


def segments(pcap: bytes) -> Iterator[Segment]:
    """Of a capture with nanoseconds, of Ethernet and IPv4, cut behind the TCP header."""
    at, begun = 24, None
    while at + 16 <= len(pcap):
        seconds, part, kept, _ = struct.unpack_from("<4I", pcap, at)
        begun = seconds if begun is None else begun
        frame = pcap[at + 16 : at + 16 + kept]
        at += 16 + kept
        ip = 14
        (total,) = struct.unpack_from(">H", frame, ip + 2)
        tcp = ip + (frame[ip] & 15) * 4
        source, destination, seq, ack = struct.unpack_from(">HHII", frame, tcp)
        header = (frame[tcp + 12] >> 4) * 4
        length = total - (tcp - ip) - header
        options = frame[tcp + 20 : tcp + header]
        yield Segment(seconds - begun + part * 1e-9, source, destination, seq, ack, length, tuple(_sacks(options)))


def _sacks(options: bytes) -> Iterator[tuple[int, int]]:
    at = 0
    while at < len(options) and options[at] != OPTION_END:
        if options[at] == OPTION_NOTHING:
            at += 1
            continue
        size = options[at + 1]
        if options[at] == OPTION_SACK:
            for edge in range(at + 2, at + size, 8):
                left, right = struct.unpack_from(">2I", options, edge)
                yield left, right
        at += size


@dataclasses.dataclass
class _Sent:
    end: int
    length: int
    t_s: float
    again: bool = False
    sacked: bool = False


def rtts(pcap: bytes, port: int, full: int) -> list[tuple[int, float, bool]]:
    """(ACK number, RTT of the newest packet that it is the first to report, s; was all that it reports full and sent once?)."""
    flight: dict[int, _Sent] = {}
    samples: list[tuple[int, float, bool]] = []
    una: int | None = None
    for now in segments(pcap):
        if now.port == port and now.length:
            if now.seq in flight:
                flight[now.seq].again = True
            else:
                flight[now.seq] = _Sent((now.seq + now.length) % MODULUS, now.length, now.t_s)
        elif now.destination == port:
            acked = (
                [s for seq, s in flight.items() if _within(s.end, una, now.ack)] if una not in (None, now.ack) else []
            )
            fresh = [s for s in acked if not s.sacked]
            for left, right in now.sacks:
                for sent in flight.values():
                    inside = (sent.end - left) % MODULUS <= (right - left) % MODULUS and sent.end != left
                    if inside and not sent.sacked and sent not in acked:
                        sent.sacked = True
                        fresh.append(sent)
            if fresh:
                newest = max(fresh, key=lambda sent: sent.t_s)
                good = all(s.length >= full and not s.again for s in [*fresh, *acked])
                samples.append((now.ack, now.t_s - newest.t_s, good))
            for seq in [seq for seq, s in flight.items() if s in acked]:
                del flight[seq]
            una = now.ack
    return samples


def _within(end: int, una: int | None, ack: int) -> bool:
    return una is not None and 0 < (end - una) % MODULUS <= (ack - una) % MODULUS


def departures(pcap: bytes, port: int) -> list[float]:
    """When each segment with data left, s."""
    return [now.t_s for now in segments(pcap) if now.port == port and now.length]


def clocks_apart_s(hooks: Sequence[Hook], pcap: bytes, port: int) -> float:
    """Time of the hooks, from a connection's first one on, less that of the capture: an ACK is handled in the instant in which it comes."""
    first = next(h for h in hooks if h.hook == "P" and h.una != hooks[0].una)
    came_s = next(now.t_s for now in segments(pcap) if now.destination == port and now.ack == first.una)
    return first.now_us / 1e6 - came_s


def inversions(pcap: bytes, port: int) -> list[tuple[int, float]]:
    """(sequence number of n, seconds between the departures) of each pair of new packets that left as n + 1, n."""
    ahead: dict[int, float] = {}  # where a packet begins that left before the one in front of it, and when it left
    pairs: list[tuple[int, float]] = []
    end: int | None = None
    for now in segments(pcap):
        if now.port != port or not now.length:
            continue
        following = (now.seq + now.length) % MODULUS
        if end is not None and now.seq != end and (now.seq - end) % MODULUS < MODULUS // 2:
            ahead[now.seq] = now.t_s
        elif following in ahead:
            pairs.append((now.seq, now.t_s - ahead.pop(following)))
        if end is None or (following - end) % MODULUS < MODULUS // 2:
            end = following
    return pairs
