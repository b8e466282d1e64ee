# SPDX-License-Identifier: Apache-2.0
"""The least of an HTTP/1.1 client: ranges of one file over a connection that stays open."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable

from agent.traffic.family import family
from agent.traffic.loop import READ, WRITE, Loop
from agent.traffic.programs.streams import READ_BYTES, has_connected

PATH = "/blob"
MAX_HEADER_BYTES = 16 << 10


class HttpConnection:
    """One connection, one request at a time.

    failed: called with words when the connection or an answer breaks
    """

    def __init__(self, loop: Loop, address: tuple[str, int], failed: Callable[[str], None]) -> None:
        self._loop, self._failed = loop, failed
        self._request: bytes | None = None
        self._done: Callable[[int], None] | None = None
        self._header, self._left, self._size = b"", -1, 0
        self._connected = self._closed = False
        self._buffer = bytearray(READ_BYTES)
        self._sock = socket.socket(family(address[0]), socket.SOCK_STREAM)
        self._sock.setblocking(False)
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        code = self._sock.connect_ex(address)
        self._broken = os.strerror(code) if code not in (0, errno.EINPROGRESS) else None
        self._loop.watch(self._sock.fileno(), READ | WRITE, self._event)

    def get(self, size_bytes: int, done: Callable[[int], None]) -> None:
        """Ask for the file's first bytes; `done` is called with their number when all are there."""
        self._request = (
            f"GET {PATH} HTTP/1.1\r\nHost: warpbed\r\nUser-Agent: warpbed\r\nRange: bytes=0-{size_bytes - 1}\r\n\r\n"
        ).encode()
        self._done, self._size, self._header, self._left = done, size_bytes, b"", -1
        if self._broken:
            self._fail(self._broken)
        elif self._connected:
            self._send()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._loop.forget(self._sock.fileno())
            self._sock.close()

    def _fail(self, reason: str) -> None:
        if not self._closed:
            self.close()
            self._failed(reason)

    def _send(self) -> None:
        assert self._request is not None
        try:
            self._sock.send(self._request)  # fits into the empty send buffer
        except OSError as error:
            self._fail(error.strerror or str(error))
        self._request = None

    def _event(self, events: int) -> None:
        if not self._connected:
            if not has_connected(self._sock):
                if code := self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                    self._fail(os.strerror(code))
                return
            self._connected = True
            self._loop.watch(self._sock.fileno(), READ, self._event)
            if self._request is not None:
                self._send()
        if events & READ and not self._closed:
            self._receive()

    def _receive(self) -> None:
        while not self._closed:
            try:
                count = self._sock.recv_into(self._buffer)
            except BlockingIOError:
                return
            except OSError as error:
                self._fail(error.strerror or str(error))
                return
            if not count:
                self._fail("the server closed the connection")
                return
            self._take(count)

    def _take(self, count: int) -> None:
        if self._left < 0:
            self._header += self._buffer[:count]
            head, end, body = self._header.partition(b"\r\n\r\n")
            if not end:
                if len(self._header) > MAX_HEADER_BYTES:
                    self._fail("the answer's header does not end")
                return
            status = head.split(b"\r\n", 1)[0].decode("latin-1")
            if " 206 " not in f"{status} ":
                self._fail(f"the server answered {status!r}")
                return
            self._left, count = self._size, len(body)
        self._left -= count
        if self._left < 0:
            self._fail(f"{-self._left} bytes more than were asked for")
        elif self._left == 0 and self._done is not None:
            done, self._done, self._left = self._done, None, -1
            done(self._size)
