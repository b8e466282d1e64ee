# SPDX-License-Identifier: Apache-2.0
"""Samples of the queueing disciplines of routers and wires: what `tc -s qdisc` shows."""

from __future__ import annotations

import socket

from base.netlink import RTM_GETQDISC, TCMSG, dump_request

PROTOCOL = socket.NETLINK_ROUTE


def question() -> bytes:
    """All queueing disciplines of a namespace."""
    return dump_request(RTM_GETQDISC, bytes(TCMSG.size))
