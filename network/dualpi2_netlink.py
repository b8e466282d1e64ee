# SPDX-License-Identifier: Apache-2.0
"""Configure DualPI2 (RFC 9332, the kernel's from 6.17 on) by rtnetlink: tc of the guests' user land does not know it."""

from __future__ import annotations

import struct

from network.impairments import Queue
from network.qdisc_netlink import CHILD, CHILD_HANDLE, OwnQdisc

LIMIT, MEMORY_LIMIT, TARGET, TUPDATE, STEP_US, ECN_MASK = 1, 2, 3, 4, 8, 14
"""TCA_DUALPI2_…; times in microseconds."""
ANY_ECT = 3
"""Packets with ECT(0) and with ECT(1) go to the low-latency queue; without it those with ECT(1) alone (RFC 9331)."""
_U32, _U8 = struct.Struct("=I"), struct.Struct("=B")


def dualpi2_qdisc(interface: str, queue: Queue, limit_packets: int, memory_bytes: int) -> OwnQdisc:
    """DualPI2 as the shaper's child, with the kernel's own values where the file says none (target 15 ms, step 1 ms).

    memory_bytes: a bound on its memory that must never be the tighter one
    """
    attributes = [(LIMIT, _U32.pack(limit_packets)), (MEMORY_LIMIT, _U32.pack(memory_bytes))]
    for kind, time_ns in ((TARGET, queue.target_ns), (TUPDATE, queue.interval_ns), (STEP_US, queue.step_ns)):
        if time_ns is not None:
            attributes.append((kind, _U32.pack(max(1, round(time_ns / 1000)))))
    if queue.any_ect:
        attributes.append((ECN_MASK, _U8.pack(ANY_ECT)))
    return OwnQdisc(interface, "dualpi2", tuple(attributes), (), CHILD, CHILD_HANDLE)
