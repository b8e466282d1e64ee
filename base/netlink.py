# SPDX-License-Identifier: Apache-2.0
"""Netlink messages and attributes (netlink(7)): how they are made and walked through, and what several users call them."""

from __future__ import annotations

import struct
from collections.abc import Iterator

HEADER = struct.Struct("=IHHII")
"""struct nlmsghdr: length, type, flags, sequence number, port."""
ATTRIBUTE = struct.Struct("=HH")
TCMSG = struct.Struct("=BxxxiIII")
"""struct tcmsg: family, interface, handle, parent, info."""

NLMSG_ERROR, NLMSG_DONE = 2, 3
REQUEST_ACK, REPLACE, EXCLUSIVE, CREATE, REQUEST_DUMP = 0x5, 0x100, 0x200, 0x400, 0x301
NESTED, TYPE_MASK = 0x8000, 0x3FFF
RTM_NEWLINK, RTM_NEWADDR, RTM_NEWROUTE, RTM_NEWNEIGH, RTM_NEWRULE = 16, 20, 24, 28, 32
RTM_NEWQDISC, RTM_GETQDISC = 36, 38
TCA_KIND, TCA_OPTIONS, TCA_STATS2 = 1, 2, 7
STATS_BASIC, STATS_QUEUE, STATS_APP, STATS_PACKETS64 = 1, 3, 4, 8
"""TCA_STATS_… within TCA_STATS2."""
TC_H_ROOT = 0xFFFFFFFF
NEVER_QUEUE = ("noqueue", "ingress", "clsact")
"""Queueing disciplines that hold no packets."""


def message(kind: int, flags: int, body: bytes, number: int = 1) -> bytes:
    return HEADER.pack(HEADER.size + len(body), kind, flags, number, 0) + body


def dump_request(kind: int, body: bytes) -> bytes:
    """Ask for all there are of a kind."""
    return message(kind, REQUEST_DUMP, body)


def attribute(kind: int, value: bytes) -> bytes:
    """An attribute, padded."""
    return ATTRIBUTE.pack(ATTRIBUTE.size + len(value), kind) + value + bytes(-len(value) % 4)


def messages(answer: bytes | bytearray | memoryview) -> Iterator[tuple[int, int, memoryview]]:
    """Type, sequence number and payload of each message; ends where a length cannot be one."""
    view, offset = memoryview(answer), 0
    while offset + HEADER.size <= len(view):
        length, kind, _, number, _ = HEADER.unpack_from(view, offset)
        if length < HEADER.size:
            return
        yield kind, number, view[offset + HEADER.size : offset + length]
        offset += (length + 3) & ~3


def attributes(data: memoryview) -> dict[int, memoryview]:
    """Attributes by type; the nested flag is taken off. Ends where a length cannot be one."""
    contents, offset = {}, 0
    while offset + ATTRIBUTE.size <= len(data):
        length, kind = ATTRIBUTE.unpack_from(data, offset)
        if length < ATTRIBUTE.size:
            break
        contents[kind & TYPE_MASK] = data[offset + ATTRIBUTE.size : offset + length]
        offset += (length + 3) & ~3
    return contents
