# SPDX-License-Identifier: Apache-2.0
"""Sleep until exact times, and packets with the times at which the kernel got them."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator

SO_TIMESTAMPNS = 35
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33
_TIMESPEC = struct.Struct("@ll")


def sleep_until_ns(when_ns: int) -> None:
    """Sleep until a time of CLOCK_MONOTONIC."""
    while (rest := when_ns - time.monotonic_ns()) > 0:
        time.sleep(rest / 1e9)


def large_buffers(sock: socket.socket, size_bytes: int) -> None:
    """Socket buffers as large as asked where this process may, else as large as it may."""
    for force, plain in ((SO_SNDBUFFORCE, socket.SO_SNDBUF), (SO_RCVBUFFORCE, socket.SO_RCVBUF)):
        try:
            sock.setsockopt(socket.SOL_SOCKET, force, size_bytes)
        except PermissionError:
            sock.setsockopt(socket.SOL_SOCKET, plain, size_bytes)


def stamped(sock: socket.socket) -> None:
    """Have the kernel tell when each packet came."""
    sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)


def received(sock: socket.socket, size_bytes: int = 2048) -> Iterator[tuple[bytes, int, str]]:
    """All packets that wait in a non-blocking socket: data, time of arrival (ns of CLOCK_REALTIME), sender."""
    while True:
        try:
            data, ancillary, _, address = sock.recvmsg(size_bytes, 64)
        except (BlockingIOError, ConnectionRefusedError):
            return
        for level, kind, value in ancillary:
            if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS:
                seconds, nanoseconds = _TIMESPEC.unpack_from(value)
                yield data, seconds * 10**9 + nanoseconds, address[0]
