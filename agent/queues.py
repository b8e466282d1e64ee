# SPDX-License-Identifier: Apache-2.0
"""Samples of the queueing disciplines of routers and wires: what `tc -s qdisc` shows."""

from __future__ import annotations

import socket
from typing import BinaryIO

from agent.samples import Sampler
from base.netlink import RTM_GETQDISC, TCMSG, dump_request


def sampler(out: BinaryIO) -> Sampler:
    """A sampler of all queueing disciplines of a namespace."""
    return Sampler(out, socket.NETLINK_ROUTE, dump_request(RTM_GETQDISC, bytes(TCMSG.size)))
