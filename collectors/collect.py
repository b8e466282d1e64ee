# SPDX-License-Identifier: Apache-2.0
"""All raw files of a run → all its records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from collectors import applications, queues, records, sockets, tcp, tcp_probe
from collectors import packets as pcap
from collectors.errors import CollectError
from collectors.packets import Array
from testbed.agent.plan import FlowPlan, Plan
from topologies.model import address_plan, path

INTERVAL_S = 0.1


@dataclass(frozen=True)
class Stream:
    """One data connection of a flow as both its ends' captures show it."""

    name: str
    plan: FlowPlan
    connection: tcp.Connection
    sent: tcp.Sent
    acks: tcp.Acks
    arrival_ns: Array
    arrival_bytes: Array


def collect(raw: Path, out: Path, plan: Plan, facts: Mapping[str, Any]) -> None:
    """Write the records of a run.

    facts: guest.json. Raises CollectError where raw files are missing or damaged.
    """
    start_ns = int(facts["start_realtime_ns"])
    captures: dict[str, pcap.Packets] = {}
    recorded = [flow for flow in plan.flows if flow.recorded]
    streams = [stream for flow in recorded for stream in _streams(raw, plan, flow, captures)]
    flow_of = {(s.connection.source, s.connection.source_port, s.connection.destination_port): s.name for s in streams}
    records.write(out, "flows", _flow_rows(streams, start_ns))
    for kind, make in (("intervals", _interval_columns), ("acks", _ack_columns)):
        records.write(out, kind, records.concatenate(kind, [make(stream, plan, start_ns) for stream in streams]))
    applications.collect(raw, out, plan)
    if plan.tcp_probe:
        initial = {s.name: s.connection.initial_seq for s in streams}
        to_realtime_ns = start_ns - int(facts["start_monotonic_ns"])
        records.write(out, "sockets", tcp_probe.rows(raw, flow_of, initial, to_realtime_ns, start_ns))
    if plan.sockets_interval_s is not None:
        records.write(out, "tcp_info", sockets.rows(raw / "sockets.bin", flow_of, start_ns))
    if plan.queues_interval_s is not None:
        nodes = [node.name for node in plan.network.nodes]
        interfaces = {name: node["interfaces"] for name, node in facts["environment"]["nodes"].items()}
        records.write(out, "queues", queues.rows(raw / "queues.bin", nodes, interfaces, start_ns))


def _streams(raw: Path, plan: Plan, flow: FlowPlan, captures: dict[str, pcap.Packets]) -> list[Stream]:
    """Data connections of a flow; none where its ends are not captured."""
    hops = path(plan.network, flow.source, flow.destination)
    places = [(flow.source, hops[0][1]), (flow.destination, hops[-1][0])]
    if any(place not in [(c.node, c.peer) for c in plan.captures] for place in places):
        return []
    plans = address_plan(plan.network)
    at_source, at_destination = (
        _capture(raw, next(i.name for i in plans[node].interfaces if i.peer == peer), captures) for node, peer in places
    )
    at_source = at_source.select((at_source.source_port == flow.port) | (at_source.destination_port == flow.port))
    at_destination = at_destination.select(
        (at_destination.source_port == flow.port) | (at_destination.destination_port == flow.port)
    )
    # both open a control connection first
    found = tcp.connections(at_source, flow.port)
    if flow.app in ("iperf3", "file"):
        found = found[1:]
    else:  # other pairs of nodes use the same port
        found = [c for c in found if _address(c.destination) == plans[flow.destination].address]
    if flow.app in ("iperf3", "file") and len(found) < flow.parallel:
        raise CollectError(f"flow {flow.name}: {len(found)} data connections in the capture, {flow.parallel} expected")
    streams = []
    for number, connection in enumerate(found):
        data = tcp.sent(at_source, connection)
        arrival_ns, arrival_bytes = tcp.first_arrivals(at_destination, connection)
        name = flow.name if number == 0 else f"{flow.name}.{number + 1}"
        streams.append(
            Stream(name, flow, connection, data, tcp.acks(at_source, connection, data), arrival_ns, arrival_bytes)
        )
    return streams


def _capture(raw: Path, interface: str, captures: dict[str, pcap.Packets]) -> pcap.Packets:
    if interface not in captures:
        captures[interface] = pcap.read(raw / f"{interface}.pcap")
    return captures[interface]


def _mbps(total_bytes: float, seconds: float) -> float | None:
    return total_bytes * 8e-6 / seconds if seconds > 0 else None


def _flow_rows(streams: list[Stream], start_ns: int) -> dict[str, list[Any]]:
    rows = [_flow_row(stream, start_ns) for stream in streams]
    return {name: [row[name] for row in rows] for name, _ in records.SCHEMAS["flows"]}


def _flow_row(s: Stream, start_ns: int) -> dict[str, Any]:
    times = s.sent.time_ns
    first = int(times[0]) if len(times) else s.connection.start_ns
    last = int(times[-1]) if len(times) else first
    delivered = int(s.arrival_bytes.sum())
    arrived = int(s.arrival_ns[-1]) if len(s.arrival_ns) else first
    rtt_ms = s.acks.rtt_ns[s.acks.rtt_ns >= 0] / 1e6
    finished = int(s.acks.time_ns[-1]) if len(s.acks.time_ns) else last
    return {
        "flow": s.name,
        "cca": s.plan.cca,
        "src": s.plan.source,
        "dst": s.plan.destination,
        "src_addr": _address(s.connection.source),
        "src_port": s.connection.source_port,
        "dst_addr": _address(s.connection.destination),
        "dst_port": s.connection.destination_port,
        "start_s": (first - start_ns) / 1e9,
        "end_s": (last - start_ns) / 1e9,
        "packets": len(times),
        "payload_bytes": int((s.sent.end - s.sent.start).sum()),
        "wire_bytes": int(s.sent.wire_bytes.sum()),
        "retransmitted_packets": int(s.sent.is_retransmission.sum()),
        "retransmitted_bytes": int(s.sent.again_bytes.sum()),
        "delivered_bytes": delivered,
        "throughput_mbps": _mbps(int(s.sent.wire_bytes.sum()), (last - first) / 1e9),
        "goodput_mbps": _mbps(delivered, (arrived - first) / 1e9),
        "rtt_min_ms": float(rtt_ms.min()) if len(rtt_ms) else None,
        "rtt_mean_ms": float(rtt_ms.mean()) if len(rtt_ms) else None,
        "rtt_p95_ms": float(np.percentile(rtt_ms, 95)) if len(rtt_ms) else None,
        "completion_s": (finished - first) / 1e9 if s.plan.size_bytes is not None else None,
    }


def _address(number: int) -> str:
    return ".".join(str(number >> shift & 255) for shift in (24, 16, 8, 0))


def _interval_columns(s: Stream, plan: Plan, start_ns: int) -> dict[str, Any]:
    first, last = _span(s, plan, start_ns)
    count, width_ns = last - first, int(INTERVAL_S * 1e9)
    edges = start_ns + width_ns * np.arange(first, last + 1)
    sent_in = np.searchsorted(s.sent.time_ns, edges)
    arrived_in = np.searchsorted(s.arrival_ns, edges)
    acked_in = np.searchsorted(s.acks.time_ns, edges)
    wire, delivered = _sums(s.sent.wire_bytes, sent_in), _sums(s.arrival_bytes, arrived_in)
    highest_sent = np.concatenate(([0], np.maximum.accumulate(s.sent.end)))[sent_in[1:]] if len(s.sent.end) else 0
    highest_acked = np.concatenate(([0], np.maximum.accumulate(s.acks.ack)))[acked_in[1:]] if len(s.acks.ack) else 0
    return {
        "time_ns": edges[:-1],
        "t_s": (edges[:-1] - start_ns) / 1e9,
        "flow": np.full(count, s.name, dtype=object),
        "width_s": np.full(count, INTERVAL_S),
        "packets": np.diff(sent_in),
        "wire_bytes": wire,
        "payload_bytes": _sums(s.sent.end - s.sent.start, sent_in),
        "retransmitted_bytes": _sums(s.sent.again_bytes, sent_in),
        "delivered_bytes": delivered,
        "throughput_mbps": wire * 8e-6 / INTERVAL_S,
        "goodput_mbps": delivered * 8e-6 / INTERVAL_S,
        "in_flight_bytes": np.maximum(highest_sent - highest_acked, 0) + np.zeros(count, dtype=np.int64),
    }


def _span(s: Stream, plan: Plan, start_ns: int) -> tuple[int, int]:
    """First interval and the one after the last: the whole run for a flow, its own life for one transfer of many."""
    whole = int(np.ceil(plan.duration_s / INTERVAL_S))
    if s.plan.app == "iperf3":
        return 0, whole
    ends = [s.connection.start_ns, *s.sent.time_ns[-1:], *s.arrival_ns[-1:], *s.acks.time_ns[-1:]]
    first, last = ((int(ns) - start_ns) // int(INTERVAL_S * 1e9) for ns in (ends[0], max(ends)))
    return max(0, min(first, whole)), max(0, min(last + 1, whole))


def _sums(values: Array, edges: Array) -> Array:
    total = np.concatenate(([0], np.cumsum(values)))
    return np.diff(total[edges])


def _ack_columns(s: Stream, _plan: Plan, start_ns: int) -> dict[str, Any]:
    a = s.acks
    return {
        "time_ns": a.time_ns,
        "t_s": (a.time_ns - start_ns) / 1e9,
        "flow": np.full(len(a.time_ns), s.name, dtype=object),
        "ack": a.ack,
        "rtt_us": np.ma.masked_array(a.rtt_ns / 1e3, a.rtt_ns < 0),
        "sacked_bytes": a.sacked_bytes,
        "duplicate": a.duplicate,
    }
