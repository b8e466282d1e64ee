# SPDX-License-Identifier: Apache-2.0
"""Datagrams over one hop of the network as it stands, from one end's namespace to the other's."""

from __future__ import annotations

import math
import socket
import struct
import time
from dataclasses import dataclass

from agent import qdisc_stats
from agent.namespaces import entered
from agent.traffic import clock
from network.direction import Direction
from network.frames import FRAME_HEADER_BYTES, FULL_FRAME_BYTES, IP_UDP_HEADER_BYTES

PORT = 5100
"""Below all ports of flows and traffic."""
NUMBER = struct.Struct("!I")
UDP_FRAME_BYTES = FRAME_HEADER_BYTES + IP_UDP_HEADER_BYTES
SMALL_FRAME_BYTES = 64
SOCKET_BYTES = 1 << 30
MARGIN_NS = 1_000_000
LOOK_NS = 20_000_000
PATIENCE_S = 2.0
"""How much longer than computed a real-time host may take to deliver."""


@dataclass(frozen=True)
class Ends:
    """The two ends of a direction: a sends, b receives. `wire` is the interface in the wires' namespace, if there is one."""

    a: str
    b: str
    a_pid: int
    b_pid: int
    a_interface: str
    a_address: str
    b_address: str
    direction: Direction
    wire_pid: int | None
    wire: str


class Hop:
    """Sockets at both ends of a direction."""

    def __init__(self, ends: Ends, realtime: bool) -> None:
        self.ends, self.realtime = ends, realtime
        self._next = 0
        with entered(ends.a_pid):
            self._sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with entered(ends.b_pid):
            self._receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._sender.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, ends.a_interface.encode())
        self._sender.bind((ends.a_address, 0))
        self._receiver.bind((ends.b_address, PORT))
        clock.stamped(self._receiver)
        for sock in (self._sender, self._receiver):
            clock.large_buffers(sock, SOCKET_BYTES)
            sock.setblocking(False)

    def close(self) -> None:
        self._sender.close()
        self._receiver.close()

    def send(self, count: int, frame_bytes: int = FULL_FRAME_BYTES) -> int:
        """Send packets one right after the other; returns the number of the first."""
        first = self._next
        packet = bytearray(frame_bytes - UDP_FRAME_BYTES)
        address = (self.ends.b_address, PORT)
        for number in range(first, first + count):
            NUMBER.pack_into(packet, 0, number)
            try:
                self._sender.sendto(packet, address)
            except (BlockingIOError, OSError):
                pass  # dropped on this side: it counts as not received
        self._next += count
        return first

    def train(self, count: int, frame_bytes: int, chunk: int) -> int:
        """Send packets at the link's rate, in chunks that fit into its buffer; returns the number of the first."""
        first, start_ns = self._next, time.monotonic_ns()
        gap_ns = chunk * self.ends.direction.serialisation_ns(frame_bytes) or MARGIN_NS
        for index in range(math.ceil(count / chunk)):
            clock.sleep_until_ns(start_ns + index * gap_ns)
            self.send(min(chunk, count - index * chunk), frame_bytes)
        return first

    def receive(self, expected: int, longest_ns: int) -> dict[int, int]:
        """What arrives until all is there or the time is over: number → time of arrival (ns of CLOCK_REALTIME)."""
        arrivals: dict[int, int] = {}
        end_ns = time.monotonic_ns() + longest_ns + (round(PATIENCE_S * 1e9) if self.realtime else 0)
        while len(arrivals) < expected and time.monotonic_ns() < end_ns:
            clock.sleep_until_ns(min(end_ns, time.monotonic_ns() + LOOK_NS))
            for data, when_ns, _ in clock.received(self._receiver):
                arrivals.setdefault(NUMBER.unpack_from(data)[0], when_ns)
        return arrivals

    def held(self) -> tuple[int, int, int]:
        """What waits on the sender's own interface: packets, bytes, and drops so far, of the queue that packets wait in."""
        with entered(self.ends.a_pid):
            mine = [state for state in qdisc_stats.read() if state.interface == self.ends.a_interface]
        if not mine:
            return 0, 0, 0
        deepest = mine[-1]
        return max(state.packets for state in mine), deepest.bytes, max(state.drops for state in mine)

    def wire_drops(self) -> int:
        """Packets that the wire has dropped so far."""
        if self.ends.wire_pid is None:
            return 0
        with entered(self.ends.wire_pid):
            return sum(state.drops for state in qdisc_stats.read() if state.interface == self.ends.wire and state.root)
