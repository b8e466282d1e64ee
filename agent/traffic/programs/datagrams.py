# SPDX-License-Identifier: Apache-2.0
"""UDP at a given rate: constant or exponential gaps between packets, all the time or in busy periods."""

from __future__ import annotations

import math
import socket
import struct
import time
from array import array
from collections.abc import Iterator
from typing import Any

from agent.traffic import clock
from agent.traffic.control import Control
from agent.traffic.family import ANY, family_of
from plan import draws
from plan.model import TrafficPlan
from plan.summary import spread

HEADER = struct.Struct("!IQ")
"""Number of the packet, time of sending (ns of CLOCK_REALTIME)."""
IP_UDP_BYTES = {socket.AF_INET: 28, socket.AF_INET6: 48}
FRAME_OVERHEAD_BYTES = 14
SOCKET_BYTES = 64 << 20
PACKET_MEMORY_BYTES = 4096
"""What a waiting packet takes of the socket's buffer, at most."""
DRAIN_S = (0.001, 1.0)
LOOK_S = 1.0
"""How often a sender looks whether it is told to end."""
LINGER_S = 2.0
"""After the last packet was sent the receiver waits this long for those under way."""


def times_ns(settings: dict[str, Any]) -> Iterator[int]:
    """When packets leave, ns since the run's start."""
    gap_ns, random = float(settings["gap_ns"]), draws.stream(settings["seed"])
    for from_s, to_s in settings["periods"]:
        here, end = from_s * 1e9, to_s * 1e9
        if settings["spacing"] == "constant":
            count = math.ceil((end - here) / gap_ns - 1e-9)
            yield from (round(here + k * gap_ns) for k in range(count))
        else:
            here -= math.log1p(-random.random()) * gap_ns
            while here < end:
                yield round(here)
                here -= math.log1p(-random.random()) * gap_ns


def send(plan: TrafficPlan, addresses: dict[str, str], control: Control) -> dict[str, Any]:
    """The sender."""
    settings, version = plan.settings, family_of(addresses)
    packet, sent, refused = bytearray(settings["packet_bytes"] - IP_UDP_BYTES[version]), 0, 0
    with socket.socket(version, socket.SOCK_DGRAM) as sock:
        clock.large_buffers(sock, SOCKET_BYTES)
        sock.setblocking(False)
        sock.connect((addresses[settings["to"]], plan.port))
        control.ready()
        look_ns = 0
        if not control.wait_start():
            return {"packets": 0}
        for when_ns in times_ns(settings):
            due_ns = control.start_ns + when_ns
            while due_ns - time.monotonic_ns() > LOOK_S * 1e9 and not control.has_ended():
                clock.sleep_until_ns(min(due_ns, time.monotonic_ns() + round(LOOK_S * 1e9)))
            clock.sleep_until_ns(due_ns)
            HEADER.pack_into(packet, 0, sent & 0xFFFFFFFF, time.clock_gettime_ns(time.CLOCK_REALTIME))
            try:
                sock.send(packet)
            except (BlockingIOError, ConnectionRefusedError):
                refused += 1
            sent += 1
            if due_ns > look_ns:
                look_ns = due_ns + round(LOOK_S * 1e9)
                if control.has_ended():
                    break
    busy_s = math.fsum(to - start for start, to in settings["periods"])
    rate_mbps = sent * (settings["packet_bytes"] + FRAME_OVERHEAD_BYTES) * 8e-6
    return {
        "packets": sent,
        "refused": refused,
        "busy_s": busy_s,
        "busy_periods": len(settings["periods"]),
        "mean_rate_mbps": rate_mbps / (settings["stop_s"] - settings["start_s"]),
    }


def drain_interval_s(rate_bps: float, packet_bytes: int) -> float:
    """How long a receiver may sleep while packets gather in a quarter of its buffer."""
    per_second = rate_bps / 8 / (packet_bytes + FRAME_OVERHEAD_BYTES)
    return min(DRAIN_S[1], max(DRAIN_S[0], SOCKET_BYTES / 4 / PACKET_MEMORY_BYTES / per_second))


def receive(plan: TrafficPlan, addresses: dict[str, str], control: Control) -> dict[str, Any]:
    """The receiver: it sleeps while packets gather, the kernel notes when they came."""
    settings = plan.settings
    version = family_of(addresses)
    arrivals = _Arrivals(version)
    with socket.socket(version, socket.SOCK_DGRAM) as sock:
        clock.large_buffers(sock, SOCKET_BYTES)
        clock.stamped(sock)
        sock.bind((ANY[version], plan.port))
        sock.setblocking(False)
        control.ready()
        if not control.wait_start():
            return {"packets": 0}
        interval_ns = round(drain_interval_s(settings["rate_bps"], settings["packet_bytes"]) * 1e9)
        here_ns = control.start_ns + round(settings["start_s"] * 1e9)
        end_ns = control.start_ns + round((settings["stop_s"] + LINGER_S) * 1e9)
        while here_ns < end_ns and not control.has_ended():
            here_ns += interval_ns
            clock.sleep_until_ns(here_ns)
            arrivals.drain(sock)
        arrivals.drain(sock)
    return arrivals.result(settings["stop_s"] - settings["start_s"])


class _Arrivals:
    """What came: counts, delays, order, jitter."""

    def __init__(self, version: socket.AddressFamily) -> None:
        self._header_bytes = IP_UDP_BYTES[version] + FRAME_OVERHEAD_BYTES
        self._seen: set[int] = set()
        self._delays_ms = array("d")
        self._highest = -1
        self._late = self._again = self._bytes = 0
        self._jitter_ms = 0.0
        self._first_ns = self._last_ns = 0

    def drain(self, sock: socket.socket) -> None:
        """Take all packets that wait."""
        for data, when_ns, _ in clock.received(sock):
            if len(data) >= HEADER.size:
                number, sent_ns = HEADER.unpack_from(data)
                self._add(number, sent_ns, when_ns, len(data))

    def _add(self, number: int, sent_ns: int, when_ns: int, payload_bytes: int) -> None:
        if number in self._seen:
            self._again += 1
            return
        self._seen.add(number)
        delay_ms = (when_ns - sent_ns) / 1e6
        if self._delays_ms:  # RFC 3550 s6.4.1
            self._jitter_ms += (abs(delay_ms - self._delays_ms[-1]) - self._jitter_ms) / 16
        self._delays_ms.append(delay_ms)
        self._late += number < self._highest
        self._highest = max(self._highest, number)
        self._first_ns, self._last_ns = self._first_ns or when_ns, max(self._last_ns, when_ns)
        self._bytes += payload_bytes + self._header_bytes

    def result(self, length_s: float) -> dict[str, Any]:
        return {
            "packets": len(self._seen),
            "duplicates": self._again,
            "reordered": self._late,
            "wire_bytes": self._bytes,
            "mean_rate_mbps": self._bytes * 8e-6 / length_s,
            "jitter_ms": self._jitter_ms,
            **spread("delay", "ms", self._delays_ms),
        }


PROGRAMS = {
    ("cbr", "client"): send,
    ("cbr", "server"): receive,
    ("poisson", "client"): send,
    ("poisson", "server"): receive,
}
