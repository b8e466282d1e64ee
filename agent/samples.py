# SPDX-License-Identifier: Apache-2.0
"""Ask the kernel the same question again and again, and keep its answers as they are (plan.samples has the file's format)."""

from __future__ import annotations

import socket
import time
from typing import BinaryIO

from base.netlink import NLMSG_DONE, NLMSG_ERROR, messages
from plan.samples import MAGIC, RECORD

_RECEIVE_BYTES = 1 << 18


class Sampler:
    """Asks one question of the kernel in several network namespaces and stores the answers.

    `add` is called once per node, while the calling thread is in that node's namespace.
    """

    def __init__(self, out: BinaryIO, protocol: int, question: bytes) -> None:
        self._out, self._protocol, self._question = out, protocol, question
        self._sockets: list[tuple[int, socket.socket]] = []
        out.write(MAGIC)

    def add(self, node_index: int) -> None:
        """Sample the namespace that the thread is in right now."""
        sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, self._protocol)
        sock.bind((0, 0))
        self._sockets.append((node_index, sock))

    def sample(self) -> None:
        for node_index, sock in self._sockets:
            sock.send(self._question)
            now = time.clock_gettime_ns(time.CLOCK_REALTIME)
            answer = bytearray()
            while not _complete(answer):
                answer += sock.recv(_RECEIVE_BYTES)
            self._out.write(RECORD.pack(now, node_index, len(answer)))
            self._out.write(answer)

    def close(self) -> None:
        for _, sock in self._sockets:
            sock.close()
        self._out.close()


def _complete(answer: bytearray) -> bool:
    return any(kind in (NLMSG_DONE, NLMSG_ERROR) for kind, _, _ in messages(answer))
