# SPDX-License-Identifier: Apache-2.0
"""Socket samples (INET_DIAG with tcp_info) → the `tcp_info` records."""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from base.netlink import attributes
from collectors.errors import CollectError, Damage
from collectors.samples import Sample, When, as_it_is, payloads, samples

MESSAGE_BYTES = 72
INFO, VEGAS, CONG = 2, 3, 4
INFINITE = 0x7FFFFFFF

FIELDS = {
    "ca_state": ("=B", 1),
    "rto_us": ("=I", 8),
    "mss_bytes": ("=I", 16),
    "unacked_packets": ("=I", 24),
    "sacked_packets": ("=I", 28),
    "lost_packets": ("=I", 32),
    "rtt_us": ("=I", 68),
    "rttvar_us": ("=I", 72),
    "ssthresh_packets": ("=I", 76),
    "cwnd_packets": ("=I", 80),
    "retransmits_total": ("=I", 100),
    "pacing_rate_bytes_per_s": ("=Q", 104),
    "min_rtt_us": ("=I", 148),
    "delivery_rate_bytes_per_s": ("=Q", 160),
    "busy_us": ("=Q", 168),
    "rwnd_limited_us": ("=Q", 176),
    "sndbuf_limited_us": ("=Q", 184),
}
"""Column → format and offset in struct tcp_info of linux/tcp.h, which only ever grows at its end."""
COUNTERS = {
    "bytes_acked": ("=Q", 120),
    "data_segs_out": ("=I", 156),
    "bytes_sent": ("=Q", 200),
    "bytes_retrans": ("=Q", 208),
    "timeouts": ("=H", 240),
}
"""What stands in for captures where there are none (collectors.uncaptured); no columns of the record. `timeouts` (tcpi_total_rto) is there
since Linux 6.7."""
UNKNOWN = 2**63 - 1
MISSING = {"timeouts": UNKNOWN}


def rows(
    path: Path, flow_of: Mapping[tuple[int, int, int], str], start_ns: int, damage: list[Damage], when: When = as_it_is
) -> dict[str, Any]:
    """Columns of the `tcp_info` records, and COUNTERS.

    flow_of: flow's name by (source address, source port, destination port) of its data connections
    """
    columns: dict[str, list[Any]] = {name: [] for name in ("time_ns", "flow", "ca", "ca_phase", *FIELDS, *COUNTERS)}
    for sample in samples(path, damage, when):
        try:
            for message in payloads(sample.answer):
                for name, value in _row(sample, message, flow_of).items():
                    columns[name].append(value)
        except (struct.error, CollectError) as error:
            damage.append(Damage(path.name, sample.offset, f"a sample of sockets that cannot be read: {error!r}"))
    result: dict[str, Any] = dict(columns)
    for name in (*FIELDS, *COUNTERS):
        result[name] = np.minimum(np.array(columns[name], dtype=np.uint64), 2**63 - 1).astype(np.int64)
    threshold = result["ssthresh_packets"]
    result["ssthresh_packets"] = np.ma.masked_array(threshold, threshold >= INFINITE)
    phases = columns["ca_phase"]
    result["ca_phase"] = np.ma.masked_array([p or 0 for p in phases], [p is None for p in phases], dtype=np.int64)
    result["t_s"] = (np.array(columns["time_ns"], dtype=np.int64) - start_ns) / 1e9
    return result


def _row(sample: Sample, message: memoryview, flow_of: Mapping[tuple[int, int, int], str]) -> dict[str, Any]:
    """One socket's values; nothing where it belongs to no flow."""
    source_port, destination_port = struct.unpack_from("!HH", message, 4)
    # struct inet_diag_msg: the family, and 16 bytes for the address
    source = int.from_bytes(message[8 : 24 if message[0] == socket.AF_INET6 else 12], "big")
    flow = flow_of.get((source, source_port, destination_port))
    attrs = attributes(message[MESSAGE_BYTES:])
    if flow is None or INFO not in attrs:
        return {}
    congestion = bytes(attrs.get(CONG, b"")).rstrip(b"\0").decode(errors="replace")
    fields = {name: struct.unpack_from(form, attrs[INFO], offset)[0] for name, (form, offset) in FIELDS.items()}
    for name, (form, offset) in COUNTERS.items():  # older kernels end earlier
        whole = len(attrs[INFO]) >= offset + struct.calcsize(form)
        fields[name] = struct.unpack_from(form, attrs[INFO], offset)[0] if whole else MISSING.get(name, 0)
    # struct tcpvegas_info: vegas and some others say here whether they are at work, modules of this project their phase
    phase = struct.unpack_from("=I", attrs[VEGAS])[0] if VEGAS in attrs else None
    return {"time_ns": sample.time_ns, "flow": flow, "ca": congestion, "ca_phase": phase, **fields}
