# SPDX-License-Identifier: Apache-2.0
"""What the capture at one end alone says of a flow: the sender's knows what was acknowledged, the receiver's what arrived."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

FROM_RECEIVER = ("delivered_bytes", "goodput_mbps", "ce_packets")
"""What the capture at the receiver is asked first; all else is the sender's."""
KNOWN_BY_RECEIVER = (
    *("flow", "cca", "src", "dst", "src_addr", "src_port", "dst_addr", "dst_port", "start_s", "end_s", "data_start_s"),
    *(
        "end_reason",
        "handshake",
        "initial_seq",
        "mss_bytes",
        "window_scale",
        "sack",
        "timestamps",
        "ecn",
        "accurate_ecn",
    ),
    *("max_payload_bytes", *FROM_RECEIVER),
)
"""What a capture at the receiver says as one at the sender would, or better. Packets that were lost before it are not in it."""


def acknowledged(acks: pa.Table, start_ns: int, width_ns: int) -> pa.Table:
    """Bytes that ACKs at the sender say have arrived in order, by interval: `time_ns` and `delivered_bytes`."""
    numbers, times = acks["ack"].to_numpy(), acks["time_ns"].to_numpy()
    highest = np.maximum.accumulate(np.maximum(numbers, 0)) if len(numbers) else np.zeros(0, dtype=np.int64)
    fresh = np.diff(highest, prepend=0)
    intervals, place = np.unique((times - start_ns) // width_ns, return_inverse=True)
    sums = np.zeros(len(intervals), dtype=np.int64)
    np.add.at(sums, place, fresh)
    return pa.table({"time_ns": pa.array(start_ns + intervals * width_ns, pa.int64()), "delivered_bytes": sums})


def by_sender(row: dict[str, Any], delivered: int) -> dict[str, Any]:
    """A flow's row from the sender's capture, with what was acknowledged as what was delivered."""
    size = min(delivered, row["unique_bytes"])
    life_s = row["end_s"] - row["start_s"]
    return {
        **row,
        "delivered_bytes": size,
        "goodput_mbps": size * 8e-6 / life_s if life_s > 0 else None,
        "ce_packets": None,
    }


def by_receiver(row: dict[str, Any]) -> dict[str, Any]:
    """A flow's row from the receiver's capture: null where only the sender's could say it."""
    return {name: value if name in KNOWN_BY_RECEIVER else None for name, value in row.items()}
