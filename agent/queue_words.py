# SPDX-License-Identifier: Apache-2.0
"""What queueing disciplines have sent and dropped, in the words of `tc`, which is asked once for all that have the same options.

A process for each node of a large network costs a guest as much as to build it (docs/virtual-time.md). The kernel tells kind, place,
options and statistics; what tc makes of a kind's options depends on nothing else, and is kept.
"""

from __future__ import annotations

import json
import re
import socket
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from agent import queues
from base.netlink import (
    NEVER_QUEUE,
    NLMSG_DONE,
    NLMSG_ERROR,
    STATS_BASIC,
    STATS_PACKETS64,
    STATS_QUEUE,
    TC_H_ROOT,
    TCA_KIND,
    TCA_OPTIONS,
    TCA_STATS2,
    TCMSG,
    attributes,
    messages,
)

SHOWN = ("kind", "dev", "parent", "root", "bytes", "packets", "drops", "options")
BASIC, PACKETS64, QUEUED = struct.Struct("=QI"), struct.Struct("=Q"), struct.Struct("=III")
"""struct gnet_stats_basic; TCA_STATS_PKT64; the beginning of struct gnet_stats_queue: packets and bytes that wait, drops."""
_UNKNOWN_OPTIONS = re.compile(r"\[Unknown qdisc, optlen=[0-9]+\] ?")
"""What tc writes into its JSON of a kind that is younger than tc, such as dualpi2."""

Options = tuple[str, bytes]
"""A kind and the kernel's bytes of its options."""
_values: dict[Options, Any] = {}


@dataclass(frozen=True)
class Told:
    """What the kernel says of a queueing discipline: its options, and place and numbers as tc names them."""

    options: Options
    statistics: dict[str, Any]


def statistics() -> list[dict[str, Any]]:
    """`tc -s -j qdisc show` in the current namespace: what every queue has sent and dropped."""
    told = [one for one in _told() if one.options[0] not in NEVER_QUEUE]
    if all(one.options in _values for one in told):
        return [{**one.statistics, "options": _values[one.options]} for one in told]
    done = subprocess.run(["tc", "-s", "-j", "qdisc", "show"], capture_output=True, text=True)
    shown = [
        {key: entry.get(key) for key in SHOWN}
        for entry in json.loads(_UNKNOWN_OPTIONS.sub("", done.stdout) or "[]")
        if entry.get("kind") not in NEVER_QUEUE
    ]
    for one, entry in zip(told, shown, strict=False):
        if all(entry[key] == one.statistics[key] for key in ("kind", "dev", "parent", "root")):
            _values[one.options] = entry["options"]
    return shown


def _told() -> Iterator[Told]:
    names = dict(socket.if_nameindex())
    for body in _answers():
        _, interface, _, parent, _ = TCMSG.unpack_from(body)
        told = attributes(body[TCMSG.size :])
        kind = bytes(told[TCA_KIND]).rstrip(b"\0").decode()
        above = None if parent == TC_H_ROOT else f"{parent >> 16:x}:{parent & 0xFFFF:x}"
        place = {"kind": kind, "dev": names.get(interface), "parent": above, "root": True if above is None else None}
        yield Told((kind, bytes(told.get(TCA_OPTIONS, b""))), {**place, **_numbers(attributes(told[TCA_STATS2]))})


def _numbers(found: dict[int, memoryview]) -> dict[str, int]:
    sent_bytes, packets = BASIC.unpack_from(found[STATS_BASIC])
    if STATS_PACKETS64 in found:
        (packets,) = PACKETS64.unpack_from(found[STATS_PACKETS64])
    return {"bytes": sent_bytes, "packets": packets, "drops": QUEUED.unpack_from(found[STATS_QUEUE])[2]}


def _answers() -> Iterator[memoryview]:
    """What the kernel says of each queueing discipline of the current namespace.

    Raises OSError where it refuses.
    """
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, queues.PROTOCOL) as sock:
        sock.bind((0, 0))
        sock.send(queues.question())
        while True:
            for kind, _, payload in messages(sock.recv(1 << 17)):
                if kind == NLMSG_DONE:
                    return
                if kind == NLMSG_ERROR:
                    raise OSError(-struct.unpack_from("=i", payload)[0], "the kernel does not tell its queues")
                yield payload
