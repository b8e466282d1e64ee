# SPDX-License-Identifier: Apache-2.0
"""Samples of the queueing disciplines of routers and wires: what `tc -s qdisc` shows."""

from __future__ import annotations

import socket
from typing import BinaryIO

from agent.samples import Sampler, request

RTM_GETQDISC = 38


def sampler(out: BinaryIO) -> Sampler:
    """A sampler of all queueing disciplines of a namespace."""
    return Sampler(out, socket.NETLINK_ROUTE, request(RTM_GETQDISC, bytes(20)))  # an empty struct tcmsg
