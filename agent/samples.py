# SPDX-License-Identifier: Apache-2.0
"""The file format of samples: raw netlink answers with the time and the node they came from.

A file starts with MAGIC. Each record is RECORD (time in ns of CLOCK_REALTIME, index of the node in the plan's
network, length) followed by that many bytes of netlink messages, exactly as the kernel sent them.
"""

from __future__ import annotations

import socket
import struct
import time
from typing import BinaryIO

MAGIC = b"WBSAMP01"
RECORD = struct.Struct("<qHI")

NLM_F_REQUEST_DUMP = 0x301
NLMSG_DONE = 3
NLMSG_ERROR = 2
_HEADER = struct.Struct("=IHHII")
_RECEIVE_BYTES = 1 << 18


def request(message_type: int, payload: bytes) -> bytes:
    """A netlink dump request."""
    return _HEADER.pack(_HEADER.size + len(payload), message_type, NLM_F_REQUEST_DUMP, 1, 0) + payload


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
    offset = 0
    while offset + _HEADER.size <= len(answer):
        length, kind = _HEADER.unpack_from(answer, offset)[:2]
        if kind in (NLMSG_DONE, NLMSG_ERROR):
            return True
        offset += (length + 3) & ~3
    return False
