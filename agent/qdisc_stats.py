# SPDX-License-Identifier: Apache-2.0
"""What the queueing disciplines of a namespace hold and have dropped, asked of the kernel without a process."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from agent.queues import RTM_GETQDISC
from agent.samples import NLMSG_DONE, NLMSG_ERROR, request

_MESSAGE = struct.Struct("=IHHII")
_TCMSG = struct.Struct("=BxxxiIII")
_ATTRIBUTE = struct.Struct("=HH")
TCA_KIND, TCA_STATS2, TCA_STATS_QUEUE = 1, 7, 3
TC_H_ROOT = 0xFFFFFFFF
_PSEUDO = ("noqueue", "ingress", "clsact")
_ANSWER_BYTES = 1 << 20


@dataclass(frozen=True)
class QdiscState:
    """One queueing discipline; `root` says whether it is its interface's first."""

    interface: str
    kind: str
    root: bool
    packets: int
    bytes: int
    drops: int


def read() -> list[QdiscState]:
    """All of the current namespace, but those that never hold a packet."""
    names = dict(socket.if_nameindex())
    found = []
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as sock:
        sock.bind((0, 0))
        sock.send(request(RTM_GETQDISC, bytes(_TCMSG.size)))
        ended = False
        while not ended:
            answer = memoryview(sock.recv(_ANSWER_BYTES))
            for kind, payload in _messages(answer):
                if kind in (NLMSG_DONE, NLMSG_ERROR):
                    ended = True
                    break
                _, index, _, parent, _ = _TCMSG.unpack_from(payload)
                attributes = dict(_attributes(payload[_TCMSG.size :]))
                name = bytes(attributes[TCA_KIND]).rstrip(b"\0").decode()
                if name in _PSEUDO or TCA_STATS2 not in attributes:
                    continue
                queue = dict(_attributes(attributes[TCA_STATS2]))[TCA_STATS_QUEUE]
                packets, size, drops = struct.unpack_from("=III", queue)
                found.append(QdiscState(names[index], name, parent == TC_H_ROOT, packets, size, drops))
    return found


def _messages(answer: memoryview) -> Iterator[tuple[int, memoryview]]:
    offset = 0
    while offset + _MESSAGE.size <= len(answer):
        length, kind = _MESSAGE.unpack_from(answer, offset)[:2]
        yield kind, answer[offset + _MESSAGE.size : offset + length]
        offset += (length + 3) & ~3


def _attributes(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    offset = 0
    while offset + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, offset)
        if length < _ATTRIBUTE.size:
            return
        yield kind & 0x3FFF, data[offset + _ATTRIBUTE.size : offset + length]
        offset += (length + 3) & ~3
