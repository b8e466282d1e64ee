# SPDX-License-Identifier: Apache-2.0
"""How connections begin: the ports that tell them apart, and what each node is told of them (agent.connections)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from base import quantities
from base.errors import Problem, SpecError
from network.frames import LONGER_IN_IPV6_BYTES
from plan.model import ConnectionStart, FlowPlan
from schema.base import Cca, Packets, StartValues
from schema.load import Document, Loc
from schema.model import Experiment, Flow
from schema.traffic import TcpEntry

FIRST_CLIENT_PORT, LAST_CLIENT_PORT = 10_001, 32_767
"""Ports of flows' data connections at their senders: above those of servers, below those that the kernel gives."""
RECEIVERS_TOO = frozenset({"dctcp"})
"""Algorithms whose receiver takes part: it says exactly which packets were marked (RFC 8257)."""
ETHERNET_MSS_BYTES, TIMESTAMPS_BYTES = 1460, 12

KEYS = ("initial_window", "initial_ssthresh", "max_window")
OWN_PARAMETERS = {"initial_window": "init_cwnd", "initial_ssthresh": "init_ssthresh"}
"""Parameters with which modules say the same; where a flow says it, that counts."""
NEVER = {
    ("ftat", "initial_window"): "ftat begins with its parameter init_bytes",
    ("hybla", "initial_window"): "hybla computes its first window",
    ("past", "initial_window"): "past begins with the packets that it measures with",
    ("bbr", "initial_ssthresh"): "bbr has no slow start threshold",
    ("fast", "initial_ssthresh"): "fast has no slow start threshold",
    ("ftat", "initial_ssthresh"): "ftat has no slow start threshold",
    ("medley", "initial_ssthresh"): "medley begins with a rule of its own, not with slow start up to a threshold",
}


@dataclasses.dataclass(frozen=True)
class Values:
    """What an entry of the file says, in packets."""

    cca: str
    initial_window: int | None = None
    initial_ssthresh: int | None = None
    max_window: int | None = None

    @property
    def given(self) -> bool:
        return self != Values(self.cca)


def with_client_ports(flows: Sequence[FlowPlan], values: Sequence[Values], document: Document) -> tuple[FlowPlan, ...]:
    """The flows with the ports of their data connections; those of one node that begin alike are neighbours."""
    planned = list(flows)
    following: dict[str, int] = {}
    for number in sorted(range(len(planned)), key=lambda i: (repr(values[i]), i)):
        flow = planned[number]
        port = following.setdefault(flow.source, FIRST_CLIENT_PORT)
        following[flow.source] = port + flow.parallel
        if following[flow.source] - 1 > LAST_CLIENT_PORT:
            most = LAST_CLIENT_PORT - FIRST_CLIENT_PORT + 1
            raise _fail(document, ("flows", number), f"more than {most} connections from {flow.source}")
        planned[number] = dataclasses.replace(flow, client_port=port)
    return tuple(planned)


def starts(
    experiment: Experiment, document: Document, flows: Sequence[FlowPlan], ports: Sequence[int]
) -> dict[str, tuple[ConnectionStart, ...]]:
    """What each node is told of its connections.

    flows: those of the experiment's flows; ports: of its traffic, in the order of the file
    """
    starts_s: dict[str, list[ConnectionStart]] = {}
    alike: dict[tuple[str, Values], list[FlowPlan]] = {}
    for i, flow in enumerate(flows):
        alike.setdefault((flow.source, values_of(experiment, document, ("flows", i))), []).append(flow)
        if flow.cca in RECEIVERS_TOO:
            receiver = ConnectionStart((flow.source,), (flow.port, flow.port), flow.client_ports, flow.cca)
            starts_s.setdefault(flow.destination, []).append(receiver)
    for (source, values), group in alike.items():
        taken = [used for flow in group if (used := flow.client_ports) is not None]
        own = (min(first for first, _ in taken), max(last for _, last in taken))
        nodes = tuple(dict.fromkeys(flow.destination for flow in group))
        starts_s.setdefault(source, []).append(ConnectionStart(nodes, own, None, **dataclasses.asdict(values)))
    for node, start in _traffic_starts(experiment, document, ports):
        starts_s.setdefault(node, []).append(start)
    return {node: tuple(entries) for node, entries in starts_s.items()}


def _traffic_starts(
    experiment: Experiment, document: Document, ports: Sequence[int]
) -> Iterator[tuple[str, ConnectionStart]]:
    """Servers of web and video send with what their route says; other programs set their algorithm by themselves."""
    for i, (entry, port) in enumerate(zip(experiment.traffic, ports, strict=True)):
        if isinstance(entry, TcpEntry) and entry.data_comes_from_the_server:
            yield entry.source, ConnectionStart((entry.destination,), (port, port), None, entry.cca.name)
        elif isinstance(entry, TcpEntry) and isinstance(entry, StartValues):
            values = values_of(experiment, document, ("traffic", i))
            for source in entry.sources() if values.given else ():
                nodes = tuple(entry.destinations())
                yield source, ConnectionStart(nodes, None, (port, port), **dataclasses.asdict(values))


def values_of(experiment: Experiment, document: Document, loc: tuple[str, int]) -> Values:
    """What a flow or a traffic says of its connections' beginning, in packets.

    Raises SpecError where its algorithm does not let itself be told, and where a first window is above the largest.
    """
    kind, index = loc
    entry = experiment.flows[index] if kind == "flows" else experiment.traffic[index]
    assert isinstance(entry, Flow | TcpEntry)
    cca, receivers = entry.cca, [entry.destination] if isinstance(entry, Flow) else entry.destinations()
    assert isinstance(entry, StartValues)
    packets: dict[str, int | None] = {}
    for key in KEYS:
        value: Packets | None = getattr(entry, key)
        value = None if value == "none" else value
        if value is not None and (why := _why_not(cca, key)):
            raise _fail(document, (*loc, key), why)
        packets[key] = None if value is None else _packets(value, experiment, receivers)
    values = Values(cca.name, **packets)
    if values.max_window is not None and (values.initial_window or 0) > values.max_window:
        raise _fail(
            document, (*loc, "initial_window"), f"{entry.initial_window} is above max_window {entry.max_window}"
        )
    return values


def _why_not(cca: Cca, key: str) -> str:
    """Why an algorithm's connections do not take a value from outside; empty where they do."""
    if OWN_PARAMETERS.get(key) in cca.params:
        return f"the parameter {OWN_PARAMETERS[key]} of {cca.name} says the same; leave one of them out"
    why = NEVER.get((cca.name, key))
    return f"{why}; leave it out" if why else ""


def _packets(value: Packets, experiment: Experiment, receivers: Sequence[str]) -> int:
    """Packets of a size: as many as it holds of the receivers' largest payload, at least 1."""
    if isinstance(value, int):
        return value
    rules = [experiment.hosts.only[name] for name in receivers if name in experiment.hosts.only]
    whole = ETHERNET_MSS_BYTES - (LONGER_IN_IPV6_BYTES if experiment.ip == 6 else 0)
    mss = max([rule.mss for rule in rules if rule.mss] or [experiment.hosts.mss or whole])
    if str(experiment.hosts.sysctls.get("net.ipv4.tcp_timestamps", 1)) != "0":
        mss -= TIMESTAMPS_BYTES
    return max(1, quantities.size_bytes(value) // mss)


def _fail(document: Document, loc: Loc, message: str) -> SpecError:
    return SpecError([Problem(document.file, document.line(loc), ".".join(map(str, loc)), message)])
