# SPDX-License-Identifier: Apache-2.0
"""A run's captures → the records flows, intervals and acks.

Each capture is analysed by itself (collectors.pcap); here what the sender's and the receiver's captures say of a flow
comes together: the receiver knows what arrived, the sender everything else.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from collectors import one_end, pcap, records
from collectors.clocks import Clocks, Pair, synchronise
from collectors.connections import TOLD, addresses, names_by_port
from collectors.errors import CollectError, Damage
from collectors.one_end import FROM_RECEIVER
from collectors.sources import AT_RECEIVER, AT_SENDER
from network.model import address_plan, is_answered_by_the_same_link, path
from plan.model import FlowPlan, Plan

INTERVAL_S = 0.1
NOT_READ = "io"
"""The layer of a failure that is the operating system's and not the capture's."""
IPERF3 = "iperf3"
IPERF3_COOKIE_BYTES = 37
BEFORE_DATA_BYTES = {IPERF3: IPERF3_COOKIE_BYTES, "file": 0}
"""Programs that open a control connection first, and what they send on each connection before the data."""
SUMMED = ("packets", "wire_bytes", "payload_bytes", "retransmitted_bytes", "delivered_bytes")

Endpoints = tuple[int, int, int]
Row = dict[str, Any]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Wire:
    """Columns of the records, and what other collectors need to know of the connections.

    flow_of: flow's name by (source address, source port, destination port)
    initial_seq: sequence number of each flow's SYN
    clocks: of the nodes, as far as the captures tell
    sources: by flow, which capture each quantity comes from
    packets: in each capture that was read, by its interface
    """

    flows: dict[str, Any]
    intervals: dict[str, Any]
    acks: dict[str, Any]
    flow_of: dict[Endpoints, str]
    initial_seq: dict[str, int]
    clocks: Clocks
    sources: dict[str, dict[str, str]]
    packets: dict[str, int]


@dataclass(frozen=True)
class Tables:
    """What one capture says of the flows of the plan that pass it.

    of: the flows by `_identity`
    places: of each flow's rows in `intervals`, which are sorted by flow
    """

    flows: dict[str, Row]
    of: dict[tuple[str, int, str, int, int], Row]
    intervals: pa.Table
    places: dict[str, tuple[int, int]]
    acks: pa.Table
    whole: bool
    packets: int

    def rows_of(self, flow: str | None) -> pa.Table:
        """A flow's intervals in the order of time."""
        first, count = self.places.get(flow or "", (0, 0))
        return self.intervals.slice(first, count)


def read(
    raw: Path,
    plan: Plan,
    start_ns: int,
    damage: list[Damage],
    clock_of: Mapping[str, str] | None = None,
    scratch: Path | None = None,
) -> Wire:
    """Analyse the captures at the flows' ends; flows of which neither end is captured are left out.

    clock_of: the clock of each node that has another than the run's (see collectors.clocks)
    scratch: a folder for what is needed meanwhile, which goes where this process is killed; default: the machine's for temporary files
    A capture that breaks off is used up to there and reported in `damage`. Raises CollectError where one is missing or no
    capture, or lacks a flow's connections.
    """
    flows = [flow for flow in plan.flows if flow.recorded]
    ends = _ends(plan, flows)
    pairs = []
    for flow in flows:
        if flow.name in ends and None not in ends[flow.name]:
            source, destination = (raw / f"{interface}.pcap" for interface in ends[flow.name])
            pairs.append(Pair(flow.source, flow.destination, source, destination, _wanted(plan, flow)))
    clocks = synchronise(clock_of or {}, pairs, scratch)
    node_of = {i.name: node for node, nodes in address_plan(plan.network).items() for i in nodes.interfaces}
    tables: dict[str, Tables] = {}
    with tempfile.TemporaryDirectory(prefix="warpbed-wire-", dir=scratch) as place:
        for interface in dict.fromkeys(interface for pair in ends.values() for interface in pair if interface):
            here = [_wanted(plan, flow) for flow in flows if interface in ends.get(flow.name, ())]
            clock = clocks.of(node_of[interface])
            file, out = raw / f"{interface}.pcap", Path(place) / interface
            tables[interface] = _analyze(file, out, here, start_ns, clock, damage)
    rows: list[Row] = []
    order: dict[str, list[str]] = {}
    intervals: list[dict[str, Any]] = []
    sources: dict[str, dict[str, str]] = {}
    for flow in flows:
        if flow.name not in ends:
            continue
        at_source, at_destination = (None if i is None else tables[i] for i in ends[flow.name])
        names = _names(flow, at_source or at_destination)
        # the receiver may see them in another order than they were opened in: a SYN may be lost
        opened = names_by_port(raw, plan, flow) if at_source is None and flow.app in TOLD else {}
        for own_name in names:
            row, sent, arrived = _sides(own_name, flow, at_source, at_destination, start_ns)
            row["flow"] = name = opened.get(row["src_port"], own_name)
            rows.append(row)
            whole = flow.app == IPERF3
            intervals.append(_dense(name, sent, arrived, plan.duration_s, start_ns, whole=whole))
            sources[name] = _sources(at_source, at_destination)
        sender_interface = ends[flow.name][0]
        if sender_interface is not None:
            order.setdefault(sender_interface, []).extend(names)
    acks = [_acks(tables[interface], names) for interface, names in order.items()]
    fields = [name for name, _ in records.SCHEMAS["flows"]]
    return Wire(
        flows={name: [row[name] for row in rows] for name in fields},
        intervals=records.concatenate("intervals", intervals),
        acks=_columns("acks", acks),
        flow_of={(int(ip_address(r["src_addr"])), r["src_port"], r["dst_port"]): r["flow"] for r in rows},
        initial_seq={row["flow"]: row["initial_seq"] for row in rows},
        clocks=clocks,
        sources=sources,
        packets={interface: table.packets for interface, table in tables.items()},
    )


def _sides(
    name: str, flow: FlowPlan, at_source: Tables | None, at_destination: Tables | None, start_ns: int
) -> tuple[Row, pa.Table | None, pa.Table]:
    """A connection's row, its intervals at the sender (None: not captured there), and those of what arrived."""
    if at_source is None:
        assert at_destination is not None
        return one_end.by_receiver(at_destination.flows[name]), None, at_destination.rows_of(name)
    sender = at_source.flows[name]
    if at_destination is None:
        arrived = one_end.acknowledged(_acks(at_source, [name]), start_ns, round(INTERVAL_S * 1e9))
        row = one_end.by_sender(sender, int(pc.sum(arrived["delivered_bytes"]).as_py() or 0))
        return _merged(row, None, flow), at_source.rows_of(name), arrived
    receiver = at_destination.of.get(_identity(sender))
    arrived = at_destination.rows_of(None if receiver is None else receiver["flow"])
    return _merged(sender, receiver, flow), at_source.rows_of(name), arrived


def _sources(at_source: Tables | None, at_destination: Tables | None) -> dict[str, str]:
    delivered = AT_RECEIVER if at_destination is not None else f"{AT_SENDER}, its ACKs"
    sender = (
        {} if at_source is None else dict.fromkeys(("sent", "rtt", "retransmissions", "highest", "timeouts"), AT_SENDER)
    )
    return {"delivered": delivered, **sender}


def _ends(plan: Plan, flows: list[FlowPlan]) -> dict[str, tuple[str | None, str | None]]:
    """Per flow the interfaces at which its source and its destination are captured; None: not there."""
    plans, captured = address_plan(plan.network), {(c.node, c.peer) for c in plan.captures}
    captured_at = {}

    def interface(node: str, peer: str) -> str | None:
        return next(i.name for i in plans[node].interfaces if i.peer == peer) if (node, peer) in captured else None

    for flow in flows:
        hops = path(plan.network, flow.source, flow.destination)
        at_source, at_destination = interface(flow.source, hops[0][1]), interface(flow.destination, hops[-1][0])
        if not is_answered_by_the_same_link(plan.network, flow.source, flow.destination):
            at_destination = None  # half of a connection's packets: the sender's ACKs tell what was delivered
        pair = at_source, at_destination
        if pair != (None, None):
            captured_at[flow.name] = pair
    return captured_at


def _wanted(plan: Plan, flow: FlowPlan) -> pcap.Flow:
    """The flow as the analysis looks for it: by its port alone where it has one, after the control connection."""
    named = pcap.Flow(flow.name, cca=flow.cca, src=flow.source, dst=flow.destination, dst_port=flow.port)
    if flow.app not in BEFORE_DATA_BYTES:  # pairs of nodes share the port of a kind of traffic
        source, destination = addresses(plan, flow)
        return replace(named, src_addr=source, dst_addr=destination, size_bytes=flow.size_bytes)
    size = None if flow.size_bytes is None or flow.parallel > 1 else flow.size_bytes + BEFORE_DATA_BYTES[flow.app]
    return replace(named, size_bytes=size, skip=1)


def _identity(row: Row) -> tuple[str, int, str, int, int]:
    """What makes a connection the same in two captures; names count the connections of each capture."""
    return row["src_addr"], row["src_port"], row["dst_addr"], row["dst_port"], row["initial_seq"]


def _analyze(
    file: Path, out: Path, flows: list[pcap.Flow], start_ns: int, clock: pcap.Clock, damage: list[Damage]
) -> Tables:
    """One capture's tables. One thread: runs are done side by side, each on a CPU of its own."""
    if not file.is_file():
        raise CollectError(f"{file}: the capture is missing")
    try:
        summary = pcap.analyze(file, out, interval_s=INTERVAL_S, start_ns=start_ns, threads=1, flows=flows, clock=clock)
    except pcap.CaptureError as error:
        raise CollectError(f"{file}: {error}") from error
    for failure in summary.errors:
        if failure.layer == NOT_READ:  # it may be whole; a run whose rest could not be read is no result
            raise CollectError(f"{file}: {failure.message}")
        damage.append(Damage(file.name, failure.offset, failure.message))
    if summary.first_bad is not None:
        remark = f"{summary.bad_packets} packets are not what they say, the first: {summary.first_bad.message}"
        damage.append(Damage(file.name, summary.first_bad.offset, remark))
    rows = pq.read_table(out / "flows.parquet").to_pylist()
    intervals = pq.read_table(out / "intervals.parquet").sort_by([("flow", "ascending"), ("time_ns", "ascending")])
    names, first, counts = np.unique(intervals["flow"].to_numpy(), return_index=True, return_counts=True)
    return Tables(
        flows={row["flow"]: row for row in rows},
        of={_identity(row): row for row in rows},
        intervals=intervals,
        places=dict(zip(names.tolist(), zip(first.tolist(), counts.tolist(), strict=True), strict=True)),
        acks=pq.read_table(out / "acks.parquet"),
        whole=not summary.errors,
        packets=summary.packets,
    )


def _names(flow: FlowPlan, at_source: Tables | None) -> list[str]:
    """Names of the flow's data connections, in their order, as the capture at its sender has them, else at its receiver."""
    assert at_source is not None
    names, number = [], 1
    while (name := flow.name if number == 1 else f"{flow.name}.{number}") in at_source.flows:
        names.append(name)
        number += 1
    if flow.app in BEFORE_DATA_BYTES and len(names) < flow.parallel and at_source.whole:
        raise CollectError(f"flow {flow.name}: {len(names)} data connections in the capture, {flow.parallel} expected")
    return names


def _merged(sender: Row, receiver: Row | None, flow: FlowPlan) -> Row:
    row = dict(sender)
    if receiver is not None:
        row.update({name: receiver[name] for name in FROM_RECEIVER})
    if flow.size_bytes is not None and flow.parallel > 1 and row["end_reason"] == "fin":
        # how much of the size each connection carries is iperf3's matter: it is done with its last byte
        row["completion_s"] = row["end_s"] - row["start_s"]
    return row


def _dense(
    name: str, sent: pa.Table | None, arrived: pa.Table, duration_s: float, start_ns: int, *, whole: bool
) -> dict[str, Any]:
    """Every interval of the run, or (not `whole`) of the flow's life in it, also those in which nothing happened.

    What the sender's capture would say is null where there is none.
    """
    first, end, width_ns = 0, int(np.ceil(duration_s / INTERVAL_S)), round(INTERVAL_S * 1e9)
    unsent = sent is None
    sent = arrived.slice(0, 0) if sent is None else sent
    sent, sent_at = _inside(sent, start_ns, width_ns, end)
    arrived, arrived_at = _inside(arrived, start_ns, width_ns, end)
    if not whole:
        life = np.concatenate([sent_at, arrived_at])
        first, end = (int(life.min()), int(life.max()) + 1) if life.size else (0, 0)
    count = end - first
    sums: dict[str, Integers] = {field: np.zeros(count, dtype=np.int64) for field in SUMMED}
    for field in SUMMED:
        rows, at = (arrived, arrived_at) if field == "delivered_bytes" else (sent, sent_at)
        sums[field][at - first] = rows[field].to_numpy()
    in_flight = np.zeros(count, dtype=np.int64)
    if sent_at.size:
        last = np.searchsorted(sent_at, np.arange(first, end), side="right") - 1
        in_flight = np.where(last >= 0, sent["in_flight_bytes"].to_numpy()[np.maximum(last, 0)], 0)
    edges = start_ns + width_ns * np.arange(first, end, dtype=np.int64)
    columns = {
        "time_ns": edges,
        "t_s": (edges - start_ns) / 1e9,
        "flow": np.full(count, name, dtype=object),
        "width_s": np.full(count, INTERVAL_S),
        **sums,
        "throughput_mbps": sums["wire_bytes"] * 8e-6 / INTERVAL_S,
        "goodput_mbps": sums["delivered_bytes"] * 8e-6 / INTERVAL_S,
        "in_flight_bytes": in_flight,
    }
    unknown = (*(field for field in SUMMED if field != "delivered_bytes"), "throughput_mbps", "in_flight_bytes")
    return columns | {field: np.ma.masked_all(count, columns[field].dtype) for field in unknown if unsent}  # type: ignore[no-untyped-call]


def _inside(rows: pa.Table, start_ns: int, width_ns: int, end: int) -> tuple[pa.Table, Integers]:
    """The rows inside the run, and the number of each one's interval."""
    at = (rows["time_ns"].to_numpy() - start_ns) // width_ns
    inside = (at >= 0) & (at < end)
    return rows.filter(pa.array(inside)), at[inside]


def _acks(tables: Tables, names: list[str]) -> pa.Table:
    """Rows of the flows' data directions, flow by flow, each in the order of the capture."""
    number = pc.index_in(tables.acks["flow"], value_set=pa.array(names, pa.string()))
    forward = pa.array([bool(tables.flows[name]["forward"]) for name in names], pa.bool_())
    at = pc.fill_null(number, 0)
    keep = pc.and_(pc.is_valid(number), pc.equal(tables.acks["forward"], forward.take(at))) if names else None
    rows = tables.acks.filter(keep) if keep is not None else tables.acks.slice(0, 0)
    numbers = pc.filter(number, keep).to_numpy() if keep is not None else np.zeros(0)
    return rows.take(pa.array(np.argsort(numbers, kind="stable")))


def _columns(kind: str, tables: Iterable[pa.Table]) -> dict[str, Any]:
    names = [name for name, _ in records.SCHEMAS[kind]]
    parts = [table.select(names) for table in tables]
    if not parts:
        return {name: [] for name in names}
    whole = pa.concat_tables(parts)
    return {name: whole[name] for name in names}
