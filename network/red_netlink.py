# SPDX-License-Identifier: Apache-2.0
"""Configure the kernel's RED by rtnetlink, where tc (iproute2 6.1 to 6.15) configures something else than requested.

tc sends `adaptive` where the kernel does not look for it, so max_p never moves; it can set only those weights that some burst
gives; and it counts idle time in ticks of 64 ns where the kernel counts microseconds, so the average falls 16 times too slowly.
"""

from __future__ import annotations

import math
import struct

from network.impairments import Queue
from network.qdisc_netlink import CHILD, CHILD_HANDLE, OwnQdisc

TCA_RED_PARMS, TCA_RED_STAB, TCA_RED_MAX_P = 1, 2, 3
FLAG_ECN, FLAG_ADAPTIVE = 1, 4
CELLS = 256
MOST_CELL_LOG = 23
"""The kernel keeps 255 cells in 32 bits of microseconds."""
MOST_SHIFT = 31
_QOPT = struct.Struct("=III4B")
"""tc_red_qopt: limit, qth_min, qth_max (bytes), Wlog, Plog (unused beside max_P), Scell_log, flags."""


def weight_log(queue: Queue) -> int:
    """The kernel's RED weighs with a power of two: the nearest n of 2^-n."""
    assert queue.weight is not None
    return max(1, round(-math.log2(queue.weight)))


def red_qdisc(interface: str, queue: Queue, rate_bps: int, limit_bytes: int) -> OwnQdisc:
    """RED as the shaper's child; what it holds is its own child's matter, limit_bytes only bounds that."""
    assert queue.min_bytes is not None and queue.max_bytes is not None
    assert queue.packet_bytes is not None and queue.probability is not None
    cell_log, shifts = idle_table(weight_log(queue), queue.packet_bytes * 8e6 / rate_bps)
    flags = FLAG_ECN * queue.ecn | FLAG_ADAPTIVE * queue.adaptive
    options = _QOPT.pack(limit_bytes, queue.min_bytes, queue.max_bytes, weight_log(queue), 0, cell_log, flags)
    share = struct.pack("=I", round(queue.probability * 2**32))
    attributes = ((TCA_RED_PARMS, options), (TCA_RED_STAB, shifts), (TCA_RED_MAX_P, share))
    return OwnQdisc(interface, "red", attributes, (), CHILD, CHILD_HANDLE)


def idle_table(weight_log: int, packet_us: float) -> tuple[int, bytes]:
    """How the average falls while nothing is sent: (1 - w)^m after m packets' time (Floyd and Jacobson 1993).

    packet_us: what sending an average packet takes

    Returns the logarithm of a cell's length in microseconds, and for each cell by how many bits the average is to be shifted.
    Within the first cell the kernel subtracts the share of the cell that has passed, so a cell is as near to an e-folding as a
    power of two can be.
    """
    decay = -math.log1p(-(2.0**-weight_log)) / packet_us  # per microsecond
    cell_log = min(MOST_CELL_LOG, max(0, round(-math.log2(decay))))
    halvings = decay * 2**cell_log / math.log(2)
    return cell_log, bytes(min(MOST_SHIFT, round(cell * halvings)) for cell in range(CELLS))
