# SPDX-License-Identifier: Apache-2.0
"""Connections that no capture shows, with addresses and ports: of flows by the plan, of traffic as its programs told them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any, TypeVar

from base.small_files import small_json
from collectors.errors import CollectError
from network.model import address_plan, source_address
from plan.model import FlowPlan, Plan

Answer = TypeVar("Answer")
MOST_BYTES = 2.0**53
FILE = "file"
TOLD = {"on_off": "connections", "transfers": "transfers"}
"""Kinds of traffic whose sending programs tell each connection's port and start, and in which list."""


@dataclass(frozen=True)
class Counted:
    """What the receiving program read of a connection, and when (seconds of the run)."""

    start_s: float
    end_s: float
    size_bytes: float


@dataclass(frozen=True)
class Connection:
    """One connection of a flow or of traffic.

    counted: None where the receiving program says nothing of it
    is_alone: whether no other connection of the run had its addresses and ports, so that samples are surely its own
    """

    flow: FlowPlan
    name: str
    src_addr: str
    src_port: int
    dst_addr: str
    start_s: float
    counted: Counted | None
    is_alone: bool = True

    @property
    def is_traffic(self) -> bool:
        return self.flow.app in TOLD

    @property
    def ends_with_its_count(self) -> bool:
        """Whether the receiver's count closes its series: tcp_probe sees no ACK behind the sender's close."""
        return self.is_traffic or self.flow.app == FILE

    @property
    def endpoints(self) -> tuple[int, int, int]:
        """Source address, source port and destination port, as the collectors of samples look for them."""
        return int(ip_address(self.src_addr)), self.src_port, self.flow.port


def are_known(flow: FlowPlan) -> bool:
    """Whether the ports of its connections are known without a capture."""
    return flow.client_port is not None or flow.app in TOLD


def uncaptured(raw: Path, plan: Plan, seen: set[str]) -> list[Connection]:
    """Connections with records of which no capture has any; seen: names of those that a capture shows.

    Raises CollectError where a program of the traffic left no file, or a damaged one.
    """
    connections: list[Connection] = []
    for flow in plan.flows:
        if not flow.recorded or flow.name in seen or not are_known(flow):
            continue
        connections += _of_traffic(raw, plan, flow) if flow.app in TOLD else _of_flow(raw, plan, flow)
    times = Counter(connection.endpoints for connection in connections)
    return [replace(connection, is_alone=times[connection.endpoints] == 1) for connection in connections]


def names_by_port(raw: Path, plan: Plan, flow: FlowPlan) -> dict[int, str]:
    """Names of the connections of traffic as they were opened, by their ports; nothing of a port that came twice."""
    connections = list(_of_traffic(raw, plan, flow))
    times = Counter(connection.src_port for connection in connections)
    return {one.src_port: one.name for one in connections if times[one.src_port] == 1}


def _name(flow: FlowPlan, number: int) -> str:
    return f"{flow.name}.{number + 1}" if number else flow.name


def addresses(plan: Plan, flow: FlowPlan) -> tuple[str, str]:
    """Those of a flow's connections, at its source and at its destination."""
    destination = address_plan(plan.network)[flow.destination].address
    return source_address(plan.network, flow.source, flow.destination), destination


def _of_flow(raw: Path, plan: Plan, flow: FlowPlan) -> Iterator[Connection]:
    """iperf3 gives its connections the ports from the plan's on."""
    assert flow.client_port is not None
    source, destination = addresses(plan, flow)
    for number in range(flow.parallel):
        counted = _of_program(raw, flow, number)
        yield Connection(
            flow, _name(flow, number), source, flow.client_port + number, destination, flow.start_s, counted
        )


def _of_program(raw: Path, flow: FlowPlan, number: int) -> Counted | None:
    """What a flow's receiving program counted; of several connections iperf3 tells each one's bytes apart."""
    try:
        reported = small_json(raw / f"{flow.name}.server.json")
        part = reported if flow.app == FILE else reported["end"]["sum_received"]
        if flow.parallel > 1:
            part = reported["end"]["streams"][number]["receiver"]
        return Counted(flow.start_s, flow.start_s + float(part["seconds"]), float(part["bytes"]))
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return None


def _of_traffic(raw: Path, plan: Plan, flow: FlowPlan) -> Iterator[Connection]:
    """Connections between a pair of nodes in the order in which they were opened; one that never came about has no port."""
    source, destination = addresses(plan, flow)
    arrived: dict[int, list[Counted]] = {}

    def count(row: dict[str, Any]) -> None:
        if row["address"] == source:
            start_s, end_s = row["start_s"], plan.duration_s if row["end_s"] is None else row["end_s"]
            times = _number(start_s, plan.duration_s), _number(end_s, plan.duration_s)
            arrived.setdefault(int(row["port"]), []).append(Counted(*times, _number(row["bytes"], MOST_BYTES)))

    def opened(row: dict[str, Any]) -> tuple[int, float] | None:
        start_s = _number(row["start_s"], plan.duration_s)
        return (int(row["port"]), start_s) if row.get("to", flow.destination) == flow.destination else None

    _each(raw, plan, flow, ("server", flow.destination, "connections"), count)
    all_opened = _each(raw, plan, flow, ("client", flow.source, TOLD[flow.app]), opened)
    connected = [one for one in all_opened if one is not None and one[0]]
    for number, (port, start_s) in enumerate(connected):
        counts = arrived.get(port)
        counted = counts.pop(0) if counts else None
        yield Connection(flow, _name(flow, number), source, port, destination, start_s, counted)


def _each(
    raw: Path, plan: Plan, flow: FlowPlan, place: tuple[str, str, str], take: Callable[[dict[str, Any]], Answer]
) -> list[Answer]:
    """Apply `take` to each connection that one process of the traffic tells of; place: side, node, name of the list."""
    side, node, name = place
    entry = next(part.name for part in plan.traffic if (part.port, part.side, part.node) == (flow.port, side, node))
    file = raw / f"{entry}.{side}.{node}.json"
    try:
        return [take(row) for row in small_json(file)[name]]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise CollectError(f"{file}: not what a program of the traffic writes: {error!r}") from error


def _number(value: Any, most: float) -> float:
    """Between 0 and `most`. Raises ValueError for what is no number."""
    number = float(value)
    if math.isnan(number):
        raise ValueError("not a number")
    return min(max(number, 0.0), most)
