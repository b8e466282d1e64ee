# SPDX-License-Identifier: Apache-2.0
"""Packets that a queue marked with ECN's "congestion experienced": each kind of queue counts them elsewhere.

The structures are those of the kernel's include/uapi/linux/pkt_sched.h, which only ever grow at their ends.
"""

from __future__ import annotations

import struct

from base.netlink import attributes

_U32 = struct.Struct("=I")
_PLACES = {
    "red": (12,),  # tc_red_xstats.marked
    "warp_red": (12,),  # the same
    "codel": (24, 32),  # tc_codel_xstats.ecn_mark, .ce_mark
    "fq_codel": (12, 28),  # behind the type: tc_fq_codel_qd_stats.ecn_mark, .ce_mark
    "pie": (36,),  # tc_pie_xstats.ecn_mark
    "dualpi2": (24,),  # tc_dualpi2_xstats.ecn_mark, those of the step among them
}
"""Offsets of the counters in the structure that a kind reports, bytes."""
TCA_CAKE_STATS_TIN_STATS, TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS = 10, 8


def marks(kind: str, reported: memoryview) -> int:
    """Packets marked so far by a queueing discipline; 0 for a kind that never marks.

    reported: what it says of itself (TCA_STATS_APP)

    Raises struct.error for a report that is shorter than the kind's.
    """
    if kind == "cake":
        tins = attributes(reported).get(TCA_CAKE_STATS_TIN_STATS, memoryview(b""))
        counts = (attributes(tin).get(TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS) for tin in attributes(tins).values())
        return sum(_U32.unpack_from(count)[0] for count in counts if count is not None)
    return sum(_U32.unpack_from(reported, place)[0] for place in _PLACES.get(kind, ()))
