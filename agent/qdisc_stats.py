# SPDX-License-Identifier: Apache-2.0
"""What the queueing disciplines of a namespace hold and have dropped, asked of the kernel without a process."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

from base.netlink import (
    NEVER_QUEUE,
    NLMSG_DONE,
    NLMSG_ERROR,
    RTM_GETQDISC,
    STATS_QUEUE,
    TC_H_ROOT,
    TCA_KIND,
    TCA_STATS2,
    TCMSG,
    attributes,
    dump_request,
    messages,
)

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
    states = []
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as sock:
        sock.bind((0, 0))
        sock.send(dump_request(RTM_GETQDISC, bytes(TCMSG.size)))
        ended = False
        while not ended:
            for kind, _, payload in messages(sock.recv(_ANSWER_BYTES)):
                if kind in (NLMSG_DONE, NLMSG_ERROR):
                    ended = True
                    break
                _, index, _, parent, _ = TCMSG.unpack_from(payload)
                about = attributes(payload[TCMSG.size :])
                name = bytes(about[TCA_KIND]).rstrip(b"\0").decode()
                if name in NEVER_QUEUE or TCA_STATS2 not in about:
                    continue
                queue = attributes(about[TCA_STATS2])[STATS_QUEUE]
                packets, size, drops = struct.unpack_from("=III", queue)
                states.append(QdiscState(names[index], name, parent == TC_H_ROOT, packets, size, drops))
    return states
