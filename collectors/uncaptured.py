# SPDX-License-Identifier: Apache-2.0
"""Flows that no capture shows: what tcp_probe, samples of their sockets and their programs say of them instead.

Their addresses and ports are known (collectors.connections). Delivered bytes are those that the sender knows to be acknowledged:
`snd_una` of each ACK (tcp_probe), else tcp_info's `bytes_acked`, else what the receiving program counted, as one interval. Of
traffic and of transfers of a file, which may be short, the series begins with the connection and ends with that count: what came after the
last ACK or sample is in it. What nothing says is null.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from collectors import records, sockets
from collectors.connections import Connection
from collectors.sources import PROBE, PROGRAM, SAMPLES
from collectors.wire import INTERVAL_S
from plan.model import Plan

Columns = Mapping[str, Any]
Floats = npt.NDArray[np.float64]

UNKNOWN_WITHOUT_CAPTURE = ("packets", "wire_bytes", "payload_bytes", "retransmitted_bytes", "in_flight_bytes")


@dataclass(frozen=True)
class Delivery:
    """Bytes that have arrived by certain times of the run, ascending; `source` says who counted them."""

    at_s: Floats
    total: Floats
    source: str


def read(
    connections: list[Connection], probe: Columns | None, samples: Columns | None, plan: Plan, start_ns: int
) -> tuple[dict[str, Any], dict[str, Any], dict[str, dict[str, str]]]:
    """Columns of `flows` and of `intervals`, and by flow which source each quantity comes from.

    probe, samples: columns of the records `sockets` and, with sockets.COUNTERS, `tcp_info`; None: not recorded
    """
    rows: list[dict[str, Any]] = []
    intervals: list[dict[str, Any]] = []
    sources: dict[str, dict[str, str]] = {}
    for planned in connections:
        flow, mine, sampled = planned.flow, _of(probe, planned.name), _of(samples, planned.name)
        connection = planned if planned.is_traffic else _opened(planned, mine)
        is_probed = probe is not None and connection.is_alone and connection.is_traffic
        delivery = _delivery(connection, mine, sampled, is_probed=is_probed)
        row: dict[str, Any] = {name: None for name, _ in records.SCHEMAS["flows"]}
        row.update(
            flow=connection.name, cca=flow.cca, src=flow.source, dst=flow.destination, src_addr=connection.src_addr,
            src_port=connection.src_port, dst_addr=connection.dst_addr, dst_port=flow.port, start_s=connection.start_s,
        )  # fmt: skip
        source_of: dict[str, str] = {}
        _complete(row, source_of, mine, sampled)
        if delivery is not None:
            source_of["delivered"] = delivery.source
            row.update(_delivered(connection.start_s, delivery))
            if mine:
                row["data_start_s"] = max(connection.start_s, _first_ack_s(mine, round_trips=1))
            intervals.append(_intervals(connection, delivery, plan.duration_s, start_ns))
        if is_probed and not mine:  # which says that there was nothing
            source_of = dict.fromkeys(("rtt", "highest", "window"), PROBE) | source_of
        rows.append(row)
        sources[connection.name] = source_of
    fields = [name for name, _ in records.SCHEMAS["flows"]]
    return {name: [row[name] for row in rows] for name in fields}, records.concatenate("intervals", intervals), sources


def _opened(connection: Connection, probe: Columns) -> Connection:
    """A flow's connection with the time at which it was opened, where the probe tells it.

    iperf3 opens it some round trips after the flow's start, when its programs have agreed on the test.
    """
    if not probe:
        return connection
    return replace(connection, start_s=max(connection.start_s, _first_ack_s(probe, round_trips=2)))


def _first_ack_s(probe: Columns, round_trips: int) -> float:
    """So many round trips before the first ACK of data: one before it the data left, two before it the SYN."""
    return float(probe["t_s"][0]) - round_trips * float(probe["srtt_us"][0]) / 1e6


def completed(
    flows: Columns, sources: dict[str, dict[str, str]], probe: Columns | None, samples: Columns | None
) -> dict[str, Any]:
    """Columns of captured flows, with what no capture says of them taken from the samples; `sources` is completed too."""
    names = list(flows)
    rows = [dict(zip(names, values, strict=True)) for values in zip(*(flows[name] for name in names), strict=True)]
    for row in rows:
        _complete(row, sources[row["flow"]], _of(probe, row["flow"]), _of(samples, row["flow"]))
    return {name: [row[name] for row in rows] for name in names}


def _complete(row: dict[str, Any], source_of: dict[str, str], probe: Columns, samples: Columns) -> None:
    if "rtt" not in source_of:
        _round_trips(row, source_of, probe, samples)
    if "retransmissions" not in source_of and samples:
        _retransmissions(row, source_of, samples)
    if (
        samples and int(samples["timeouts"][-1]) != sockets.UNKNOWN
    ):  # the kernel's own count goes before a capture's estimate
        source_of["timeouts"] = SAMPLES
        row["timeouts"] = int(samples["timeouts"][-1])
    if "highest" not in source_of and probe:
        source_of["highest"] = PROBE
    if probe or samples:
        source_of["window"] = PROBE if probe else SAMPLES


def _of(columns: Columns | None, name: str) -> dict[str, Any]:
    """A flow's rows; empty where there are none."""
    if columns is None:
        return {}
    mask = np.asarray(columns["flow"], dtype=object) == name
    return {key: np.ma.asarray(values)[mask] for key, values in columns.items()} if mask.any() else {}


def _delivery(connection: Connection, probe: Columns, samples: Columns, *, is_probed: bool) -> Delivery | None:
    """is_probed: each of its ACKs would be in the record of tcp_probe"""
    counted = connection.counted
    if probe:
        acked = np.maximum.accumulate(np.asarray(probe["snd_una"], dtype=float))
        delivery = Delivery(np.asarray(probe["t_s"]), acked, PROBE)
    elif samples:
        acked = np.maximum(np.asarray(samples["bytes_acked"], dtype=float) - 1, 0)  # it counts the SYN
        delivery = Delivery(np.asarray(samples["t_s"]), acked, SAMPLES)
    elif is_probed:  # no ACK came back to it
        delivery = Delivery(np.array([connection.start_s]), np.array([0.0]), PROBE)
    elif counted is not None:
        times_s = np.array([connection.start_s, max(counted.end_s, connection.start_s)])
        return Delivery(times_s, np.array([0.0, counted.size_bytes]), PROGRAM)
    else:
        return None
    return _closed(connection, delivery) if connection.ends_with_its_count else delivery


def _closed(connection: Connection, delivery: Delivery) -> Delivery:
    """The series from the connection's start to all that its receiver has read."""
    at_s, total, counted = delivery.at_s, delivery.total, connection.counted
    if at_s[0] > connection.start_s:
        at_s, total = np.append(connection.start_s, at_s), np.append(0.0, total)
    if counted is not None and counted.size_bytes > total[-1]:
        at_s, total = np.append(at_s, max(counted.end_s, at_s[-1])), np.append(total, counted.size_bytes)
    return Delivery(at_s, total, delivery.source)


def _round_trips(row: dict[str, Any], source_of: dict[str, str], probe: Columns, samples: Columns) -> None:
    """Smoothed round-trip times stand for those of single packets; tcp_info knows the smallest of these as well."""
    if not probe and not samples:
        return
    column, source = (probe["srtt_us"], PROBE) if probe else (samples["rtt_us"], SAMPLES)
    srtt_ms = np.asarray(column, dtype=float) / 1e3
    srtt_ms = srtt_ms[srtt_ms > 0]
    if not srtt_ms.size:
        return
    source_of["rtt"] = f"{source}, smoothed"
    row["rtt_mean_ms"], row["rtt_p95_ms"] = float(srtt_ms.mean()), float(np.quantile(srtt_ms, 0.95))
    row["rtt_min_ms"], row["rtt_max_ms"] = float(srtt_ms.min()), float(srtt_ms.max())
    if samples:
        smallest = np.asarray(samples["min_rtt_us"], dtype=float)
        smallest = smallest[(smallest > 0) & (smallest < 2**32 - 1)]
        if smallest.size:
            row["rtt_min_ms"] = float(smallest.min()) / 1e3


def _retransmissions(row: dict[str, Any], source_of: dict[str, str], samples: Columns) -> None:
    """TCP's own counters, as of the last sample."""
    source_of["retransmissions"] = SAMPLES
    row["retransmitted_packets"] = int(samples["retransmits_total"][-1])
    row["retransmitted_bytes"] = int(samples["bytes_retrans"][-1])
    row["data_packets"] = int(samples["data_segs_out"][-1])
    row["payload_bytes"] = int(samples["bytes_sent"][-1])


def _delivered(start_s: float, delivery: Delivery) -> dict[str, Any]:
    end_s, total = float(delivery.at_s[-1]), int(delivery.total[-1])
    life_s = end_s - start_s
    goodput_mbps = total * 8e-6 / life_s if life_s > 0 else None
    return {"end_s": end_s, "delivered_bytes": total, "goodput_mbps": goodput_mbps}


def _intervals(connection: Connection, delivery: Delivery, duration_s: float, start_ns: int) -> dict[str, Any]:
    """Intervals as the captures have them; between two samples bytes arrive evenly. A program's count is one interval.

    Those of traffic span the connection's life only.
    """
    if delivery.source == PROGRAM:
        edges_s, at_edges = delivery.at_s, delivery.total
    else:
        first, last = 0, _ceiling(duration_s)
        if connection.is_traffic:
            last = min(last, _ceiling(float(delivery.at_s[-1])))
            first = min(int(connection.start_s / INTERVAL_S + 1e-9), last)
        edges_s = INTERVAL_S * np.arange(first, last + 1, dtype=np.float64)
        at_edges = np.interp(edges_s, delivery.at_s, delivery.total, left=0.0)
    if delivery.source == PROBE:  # each ACK brings its bytes at once
        place = np.searchsorted(delivery.at_s, edges_s, side="right") - 1
        at_edges = np.where(place >= 0, delivery.total[np.maximum(place, 0)], 0.0)
    delivered = np.diff(np.round(at_edges)).astype(np.int64)
    widths_s, first_ns = np.diff(edges_s), np.round(edges_s[:-1] * 1e9).astype(np.int64)
    return {
        "time_ns": start_ns + first_ns,
        "t_s": first_ns / 1e9,
        "flow": np.full(len(delivered), connection.name, dtype=object),
        "width_s": widths_s,
        **dict.fromkeys(UNKNOWN_WITHOUT_CAPTURE, np.ma.masked_all(len(delivered), dtype=np.int64)),  # type: ignore[no-untyped-call]
        "delivered_bytes": delivered,
        "throughput_mbps": np.ma.masked_all(len(delivered)),  # type: ignore[no-untyped-call]
        "goodput_mbps": delivered * 8e-6 / np.where(widths_s > 0, widths_s, np.inf),
    }


def _ceiling(t_s: float) -> int:
    """Number of the interval that ends then or next."""
    return int(np.ceil(t_s / INTERVAL_S - 1e-9))


def joined(kind: str, first: Columns, second: Columns) -> dict[str, Any]:
    """Two sets of columns, one behind the other."""
    return {name: _behind(first[name], second[name]) for name, _ in records.SCHEMAS[kind]}


def _behind(first: Any, second: Any) -> Any:
    if not len(first) or not len(second):
        return first if len(first) else second
    if isinstance(first, list):
        return [*first, *second]
    return np.ma.concatenate([first, second])  # type: ignore[no-untyped-call]
