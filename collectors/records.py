# SPDX-License-Identifier: Apache-2.0
"""Schemas of the records and how they are written. docs/records.md explains every column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from collectors import reading
from collectors.version import SCHEMA_VERSION

_TIME = [("time_ns", pa.int64()), ("t_s", pa.float64())]


def _columns(kind: pa.DataType, names: str) -> list[tuple[str, pa.DataType]]:
    return [(name, kind) for name in names.split()]


SCHEMAS: dict[str, list[tuple[str, pa.DataType]]] = {
    "flows": [
        *_columns(pa.string(), "flow cca src dst src_addr"),
        ("src_port", pa.int32()),
        ("dst_addr", pa.string()),
        ("dst_port", pa.int32()),
        *_columns(pa.float64(), "start_s end_s"),
        *_columns(
            pa.int64(), "packets payload_bytes wire_bytes retransmitted_packets retransmitted_bytes delivered_bytes"
        ),
        *_columns(pa.float64(), "throughput_mbps goodput_mbps rtt_min_ms rtt_mean_ms rtt_p95_ms completion_s"),
        ("data_start_s", pa.float64()),
        ("end_reason", pa.string()),
        ("handshake", pa.bool_()),
        ("handshake_rtt_ms", pa.float64()),
        *_columns(pa.int64(), "initial_seq mss_bytes window_scale"),
        *_columns(pa.bool_(), "sack timestamps ecn accurate_ecn"),
        *_columns(pa.int64(), "data_packets unique_bytes max_payload_bytes"),
        *_columns(pa.int64(), "fast_retransmissions timeout_retransmissions timeouts tail_probe_retransmissions"),
        *_columns(
            pa.int64(), "other_retransmissions spurious_retransmissions spurious_by_dsack spurious_by_timestamps"
        ),
        *_columns(pa.int64(), "out_of_order_packets gaps unseen_bytes out_of_window_packets keep_alives"),
        *_columns(pa.int64(), "zero_window_probes max_in_flight_bytes ect_packets ce_packets ece_packets cwr_packets"),
        *_columns(pa.int64(), "resets acks duplicate_acks sack_blocks dsack_blocks sack_reneged zero_windows"),
        *_columns(pa.float64(), "zero_window_s window_limited_s"),
        ("rtt_samples", pa.int64()),
        ("rtt_max_ms", pa.float64()),
        ("rtt_timestamps_samples", pa.int64()),
        *_columns(pa.float64(), "rtt_timestamps_min_ms rtt_timestamps_mean_ms rtt_timestamps_p95_ms"),
    ],
    "intervals": [
        *_TIME,
        ("flow", pa.string()),
        ("width_s", pa.float64()),
        *_columns(pa.int64(), "packets wire_bytes payload_bytes retransmitted_bytes delivered_bytes"),
        *_columns(pa.float64(), "throughput_mbps goodput_mbps"),
        ("in_flight_bytes", pa.int64()),
    ],
    "sockets": [
        *_TIME,
        ("flow", pa.string()),
        *_columns(pa.int64(), "cwnd_packets ssthresh_packets srtt_us snd_wnd_bytes in_flight_bytes snd_nxt snd_una"),
    ],
    "tcp_info": [
        *_TIME,
        ("flow", pa.string()),
        ("ca", pa.string()),
        *_columns(
            pa.int64(),
            "ca_state ca_phase cwnd_packets ssthresh_packets mss_bytes rtt_us rttvar_us min_rtt_us rto_us unacked_packets",
        ),
        *_columns(
            pa.int64(),
            "sacked_packets lost_packets retransmits_total pacing_rate_bytes_per_s delivery_rate_bytes_per_s",
        ),
        *_columns(pa.int64(), "busy_us rwnd_limited_us sndbuf_limited_us"),
    ],
    "queues": [
        *_TIME,
        *_columns(pa.string(), "node interface qdisc"),
        *_columns(pa.int64(), "backlog_packets backlog_bytes sent_packets sent_bytes drops marks"),
    ],
    "acks": [
        *_TIME,
        ("flow", pa.string()),
        ("ack", pa.int64()),
        ("rtt_us", pa.float64()),
        ("sacked_bytes", pa.int64()),
        ("duplicate", pa.bool_()),
        ("rtt_timestamps_us", pa.float64()),
        *_columns(pa.int64(), "window_bytes in_flight_bytes"),
    ],
}


def write(folder: Path, kind: str, columns: Mapping[str, Any]) -> None:
    """Write one kind of record; `columns` has exactly the schema's names, masked arrays give nulls.

    The bytes depend on the values only, so equal runs give equal files.
    """
    schema = pa.schema(SCHEMAS[kind], metadata={"warpbed.schema": str(SCHEMA_VERSION)})
    if set(columns) != set(schema.names):
        raise ValueError(f"{kind}: columns {sorted(set(columns) ^ set(schema.names))} do not fit the schema")
    arrays = [_array(columns[name], schema.field(name).type) for name in schema.names]
    folder.mkdir(exist_ok=True)
    table = pa.Table.from_arrays(arrays, schema=schema)
    if kind in PER_ACK and (start := reading.left_out(table)) is not None:
        metadata = {**(schema.metadata or {}), reading.START: str(start)}
        table = table.drop_columns([reading.SECONDS]).replace_schema_metadata(metadata)
    write_table(table, folder / f"{kind}.parquet")


PER_ACK = ("acks", "sockets")
"""Records of so many rows that the seconds, whose digits no encoding shortens, are left to whoever reads (collectors.reading)."""
EVEN = ("time_ns", "ack", "snd_nxt", "snd_una", "srtt_us")
"""Numbers that grow, or wander, by small steps: stored as differences."""
REPEATED = ("in_flight_bytes", "drops", "marks", "queue_drops", "queue_marks", "duplicate")
LEVEL = 5
"""Of zstd: a seventh smaller than with 1; above it files shrink by 4 % for twice the CPU time and more."""


def write_table(table: pa.Table, file: Path) -> None:
    """A table as a Parquet file, each column as it takes least: differences, byte by byte, a dictionary, or as it is."""
    encoding, repeated = {}, []
    for name in table.column_names:
        kind = table.schema.field(name).type
        if name in EVEN and pa.types.is_integer(kind):
            encoding[name] = "DELTA_BINARY_PACKED"
        elif name == "t_s":
            encoding[name] = "BYTE_STREAM_SPLIT"
        elif name in REPEATED or pa.types.is_string(kind):
            repeated.append(name)
    pq.write_table(
        table, file, compression="zstd", compression_level=LEVEL, use_dictionary=repeated, column_encoding=encoding
    )


def _array(values: Any, kind: pa.DataType) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        return values.cast(kind)
    if isinstance(values, np.ma.MaskedArray):
        return pa.array(values.data, type=kind, mask=np.ma.getmaskarray(values))
    return pa.array(values, type=kind)


def concatenate(kind: str, parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Join columns of several flows; no parts give empty columns."""
    joined: dict[str, Any] = {}
    for name, _ in SCHEMAS[kind]:
        values = [part[name] for part in parts]
        joined[name] = np.ma.concatenate(values) if values else []  # type: ignore[no-untyped-call]
    return joined
