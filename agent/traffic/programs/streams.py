# SPDX-License-Identifier: Apache-2.0
"""TCP senders and their sink: one process for all connections of an entry on a node.

The algorithm is set before a connection opens, so that it counts from the handshake. A transfer is over when the sink
has read all of it and closed: the sender's own clock tells how long that took.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import struct
from collections.abc import Callable
from typing import Any

from agent.traffic.control import Control
from agent.traffic.family import family, family_of
from agent.traffic.loop import READ, WRITE, Loop
from plan.model import TrafficPlan
from plan.summary import spread

TCP_CONGESTION, TCP_NOTSENT_LOWAT = 13, 25
NOTSENT_BYTES = 32 << 10
"""What waits unsent in the socket of a connection that ends at a time: little, so that it ends soon after; it is filled up
again, for one wake-up each, when half of it is left."""
SIOCOUTQ = 0x5411
CHUNK = memoryview(bytes(256 << 10))
READ_BYTES = 256 << 10
BACKLOG = 4096


def tcp_socket(address: str, cca: str, ends_at_a_time: bool) -> socket.socket:
    """A non-blocking TCP socket under an algorithm, for connections to an address."""
    sock = socket.socket(family(address), socket.SOCK_STREAM)
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, TCP_CONGESTION, cca.encode())
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if ends_at_a_time:
        sock.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, NOTSENT_BYTES)
    return sock


def has_connected(sock: socket.socket) -> bool:
    try:
        sock.getpeername()
    except OSError:
        return False
    return True


class Sender:
    """One connection that sends. `limit` is what it has to send, None for as much as it can."""

    def __init__(
        self, loop: Loop, address: tuple[str, int], cca: str, limit: int | None, done: Callable[[], None]
    ) -> None:
        self._loop, self._limit, self._done = loop, limit, done
        self.start_s = loop.now_s()
        self.connected_s: float | None = None
        self.end_s: float | None = None
        self.sent_bytes = self.acked_bytes = self.port = 0
        self.error: str | None = None
        self._sending, self._shut, self._closed = True, False, False
        self._sock = tcp_socket(address[0], cca, limit is None)
        code = self._sock.connect_ex(address)
        if code not in (0, errno.EINPROGRESS):
            self._fail(os.strerror(code))
        else:
            self._watch()

    def pause(self) -> None:
        self._sending = False
        self._watch()

    def resume(self) -> None:
        self._sending = True
        self._watch()

    def finish(self) -> None:
        """Send nothing more, and wait until the sink has it all."""
        if self._closed or self._shut:
            return
        self._shut, self._sending = True, False
        try:
            self._sock.shutdown(socket.SHUT_WR)
        except OSError as error:  # not connected yet
            self._fail(str(error.strerror))
            return
        self._watch()

    def close(self) -> None:
        """End at once; what was not delivered stays undelivered."""
        if self._closed:
            return
        self._closed = True
        if self.sent_bytes:
            waiting = struct.unpack("i", fcntl.ioctl(self._sock, SIOCOUTQ, b"\0\0\0\0"))[0]
            self.acked_bytes = max(0, self.sent_bytes - waiting)
        self._loop.forget(self._sock.fileno())
        self._sock.close()
        self._done()

    def _watch(self) -> None:
        if not self._closed:
            wanted = READ | (WRITE if self._sending or self.connected_s is None else 0)
            self._loop.watch(self._sock.fileno(), wanted, self._event)

    def _fail(self, reason: str) -> None:
        self.error = reason
        self.close()

    def _event(self, events: int) -> None:
        if self.connected_s is None:
            if not has_connected(self._sock):
                code = self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if code:
                    self._fail(os.strerror(code))
                return
            self.connected_s, self.port = self._loop.now_s(), self._sock.getsockname()[1]
            self._watch()
        try:
            if events & READ and self._read():
                return
            if self._sending:
                self._write()
        except OSError as error:
            self._fail(error.strerror or str(error))

    def _read(self) -> bool:
        """Whether the connection is over."""
        try:
            if self._sock.recv(4096):
                return False
        except BlockingIOError:
            return False
        if self._shut:
            self.end_s = self._loop.now_s()
            self.close()
        else:
            self._fail("the sink closed before the end")
        return True

    def _write(self) -> None:
        try:
            while self._limit is None or self.sent_bytes < self._limit:
                rest = len(CHUNK) if self._limit is None else self._limit - self.sent_bytes
                self.sent_bytes += self._sock.send(CHUNK[:rest])
        except BlockingIOError:
            return
        self.finish()

    def result(self) -> dict[str, Any]:
        """What is told of the connection; completion_s only where the sink has got all of it."""
        done = self.end_s is not None
        return {
            "port": self.port, "start_s": self.start_s, "connected_s": self.connected_s, "end_s": self.end_s,
            "sent_bytes": self.sent_bytes, "delivered_bytes": self.sent_bytes if done else self.acked_bytes,
            "completion_s": self.end_s - self.start_s if self.end_s is not None else None, "error": self.error,
        }  # fmt: skip


def transfers(plan: TrafficPlan, addresses: dict[str, str], control: Control) -> dict[str, Any]:
    """Transfers that arrive at their times, each with a size or a lifetime."""
    settings, loop = plan.settings, Loop(control)
    begun: list[tuple[dict[str, Any], Sender]] = []
    left = len(settings["transfers"])

    def ended() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            loop.stop()

    def begin(transfer: dict[str, Any]) -> None:
        address = (addresses[transfer["to"]], plan.port)
        sender = Sender(loop, address, settings["cca"], transfer.get("size_bytes"), ended)
        begun.append((transfer, sender))
        if "life_s" in transfer:
            loop.at(transfer["start_s"] + transfer["life_s"], sender.finish)

    def end() -> None:
        loop.stop()

    control.ready()
    if not control.wait_start():
        return {"transfers": []}
    for transfer in settings["transfers"]:
        loop.at(transfer["start_s"], lambda transfer=transfer: begin(transfer))  # type: ignore[misc]
    loop.at(settings["end_s"], end)
    if left:
        loop.run()
    for _, sender in begun:
        sender.close()
    loop.close()
    return {"transfers": [{**transfer, **sender.result()} for transfer, sender in begun]}


def on_off(plan: TrafficPlan, addresses: dict[str, str], control: Control) -> dict[str, Any]:
    """Connections that stay, and send in the busy periods only."""
    settings, loop = plan.settings, Loop(control)
    senders: list[Sender] = []
    stop_s = settings["periods"][-1][1]

    def begin() -> None:
        for _ in range(settings["connections"]):
            senders.append(Sender(loop, (addresses[settings["to"]], plan.port), settings["cca"], None, _nothing))

    def each(action: Callable[[Sender], None]) -> Callable[[], None]:
        def act() -> None:
            for sender in senders:
                action(sender)

        return act

    control.ready()
    if not control.wait_start():
        return {"connections": []}
    for number, (from_s, to_s) in enumerate(settings["periods"]):
        loop.at(from_s, each(Sender.resume) if number else begin)
        loop.at(to_s, each(Sender.finish) if to_s >= stop_s else each(Sender.pause))
    loop.at(settings["end_s"], loop.stop)
    loop.run()
    for sender in senders:
        sender.close()
    loop.close()
    return {"connections": [sender.result() for sender in senders]}


def _nothing() -> None:
    """An on-off connection's end changes nothing for the others."""


def sink(plan: TrafficPlan, addresses: dict[str, str], control: Control) -> dict[str, Any]:
    """Read everything of everybody, and close when the sender has finished."""
    loop, buffer = Loop(control), bytearray(READ_BYTES)
    connections: list[dict[str, Any]] = []

    def accept(_events: int) -> None:
        while True:
            try:
                sock, (address, port, *_) = listener.accept()
            except BlockingIOError:
                return
            sock.setblocking(False)
            entry = {"address": address, "port": port, "start_s": loop.now_s(), "end_s": None, "bytes": 0}
            connections.append(entry)
            loop.watch(sock.fileno(), READ, lambda _, sock=sock, entry=entry: read(sock, entry))  # type: ignore[misc]

    def read(sock: socket.socket, entry: dict[str, Any]) -> None:
        try:
            while count := sock.recv_into(buffer):
                entry["bytes"] += count
            entry["end_s"] = loop.now_s()
        except BlockingIOError:
            return
        except OSError as error:
            entry["error"] = error.strerror
        loop.forget(sock.fileno())
        sock.close()

    with socket.create_server(("", plan.port), family=family_of(addresses), backlog=BACKLOG) as listener:
        listener.setblocking(False)
        loop.watch(listener.fileno(), READ, accept)
        control.ready()
        loop.run()
    total = sum(entry["bytes"] for entry in connections)
    return {
        "connections": connections,
        "bytes": total,
        **spread("size", "bytes", [float(e["bytes"]) for e in connections]),
    }


PROGRAMS = {
    ("on_off", "client"): on_off,
    ("on_off", "server"): sink,
    ("transfers", "client"): transfers,
    ("transfers", "server"): sink,
}
