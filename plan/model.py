# SPDX-License-Identifier: Apache-2.0
"""The controller's orders to the agent: one run, resolved to numbers.

The same classes write the plan (as JSON) and read it back, so the two sides cannot disagree.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from network.direction import direction_from
from network.model import Bottleneck, Link, Network, Node

PLAN_FORMAT = 1
FIRST_PORT = 5201
"""Server port of the first flow; flow k uses FIRST_PORT + k."""

PROBE_BYTES = 98
"""Length of the idle probe's frames: an ICMP echo with 56 bytes of data, as ping sends."""


@dataclass(frozen=True)
class FlowPlan:
    """TCP connections of one program between two nodes. Either `duration_s` or `size_bytes` is set.

    app: "iperf3" or "file" for a flow, else the kind of traffic that they belong to
    recorded: whether their packets are captured and become records
    pacing_bps: the socket's largest rate, kept by the kernel
    """

    name: str
    app: str
    cca: str
    source: str
    destination: str
    port: int
    start_s: float
    duration_s: float | None = None
    size_bytes: int | None = None
    parallel: int = 1
    recorded: bool = True
    pacing_bps: int | None = None
    client_port: int | None = None
    """Port of its first data connection at the sender, the others follow; None for whatever the kernel gives."""

    @property
    def client_ports(self) -> tuple[int, int] | None:
        """The first and the last."""
        return None if self.client_port is None else (self.client_port, self.client_port + self.parallel - 1)


@dataclass(frozen=True)
class TrafficPlan:
    """What one process of a kind of traffic does on one node.

    side: "client" for the one that begins (it sends datagrams, opens connections), "server" for the one that answers
    settings: the kind's own numbers (testbed.compile_traffic writes them, agent/traffic/ reads them)
    """

    name: str
    kind: str
    side: str
    node: str
    port: int
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ConnectionStart:
    """How the connections of a node begin that go to some nodes and have some ports (first and last; None: any).

    cca: the algorithm, from the handshake on
    initial_window, initial_ssthresh, max_window: packets
    None everywhere: as the node's other connections.
    """

    destinations: tuple[str, ...]
    own_ports: tuple[int, int] | None = None
    peer_ports: tuple[int, int] | None = None
    cca: str | None = None
    initial_window: int | None = None
    initial_ssthresh: int | None = None
    max_window: int | None = None

    @property
    def needs_module(self) -> bool:
        """Whether a route alone cannot say it to TCP: warp_start does."""
        return self.initial_ssthresh is not None or self.max_window is not None


@dataclass(frozen=True)
class HostSettings:
    """Per host: sysctls, whether its receivers acknowledge every packet, the MSS it advertises (bytes), and whether TCP may
    hand several packets on at once (`linux`: up to 1 ms of its pacing rate; `none`: one), and with how many packets its
    connections begin (None: the kernel's ten). starts: what is different for some of them; the first that fits counts."""

    sysctls: dict[str, str] = field(default_factory=dict)
    ack: str = "delayed"
    mss: int | None = None
    bursts: str = "linux"
    initial_window: int | None = None
    starts: tuple[ConnectionStart, ...] = ()


@dataclass(frozen=True)
class Capture:
    """A tcpdump on a node's interface towards a peer; `snap_bytes` 0 keeps whole packets, `packets_at_most` 0 all of them."""

    node: str
    peer: str
    snap_bytes: int = 96
    packets_at_most: int = 0


BATCH_MODULE = "warp_rxbatch"
"""The kernel module that batches receivers: for virtual time only."""
LINK_MODULES = ("um_link", "warp_wire")
"""The kernel modules that let links of the virtual host have one event per packet; the first is for it alone."""
START_MODULE = "warp_start"
"""The kernel module that lets a route say a connection's first ssthresh and its largest window."""


@dataclass(frozen=True)
class Module:
    """A kernel module to load before anything else, with its parameters."""

    path: str
    params: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class BpfObject:
    """A congestion control as a BPF object, to register before anything is sent. sha256: of the file at `path`."""

    cca: str
    path: str
    sha256: str


@dataclass(frozen=True)
class Cabling:
    """What one machine of a cabled network is told (hosts.nodes.cabling).

    nics: interface of the plan → name or MAC address of the machine's own; numbers: interface → number of its link
    wires: numbers of the links whose delay and loss happen at this machine
    protected: the machine's own interface → why it must not be touched
    """

    node: str
    nics: dict[str, str]
    numbers: dict[str, int]
    wires: tuple[int, ...] = ()
    protected: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), indent=1, sort_keys=True)


def cabling_from_json(text: str) -> Cabling:
    data = json.loads(text)
    return Cabling(data["node"], data["nics"], data["numbers"], tuple(data["wires"]), data["protected"])


@dataclass(frozen=True)
class Plan:
    network: Network
    flows: tuple[FlowPlan, ...]
    duration_s: float
    grace_s: float
    start_grid_s: int
    hosts: dict[str, HostSettings]
    captures: tuple[Capture, ...] = ()
    traffic: tuple[TrafficPlan, ...] = ()
    calibration: str = "run"
    tcp_probe: bool = True
    sockets_interval_s: float | None = None
    queues_interval_s: float | None = None
    modules: tuple[Module, ...] = ()
    bpf: tuple[BpfObject, ...] = ()
    cca_params: dict[str, dict[str, str]] = field(default_factory=dict)
    realtime: bool = False
    recorded_by: str = "programs"
    """Who captures and samples: `programs` (tcpdump, the agent), or the `kernel` of the virtual host."""
    links: str = "chain"
    """How links time packets: a `chain` of shaper and wire, or one of the virtual host's `events` (network.one_event)."""
    ends_with_flows: bool = False
    """Whether the run ends as soon as every flow has; all of them then have a size."""

    def to_json(self) -> str:
        return json.dumps({"format": PLAN_FORMAT, **dataclasses.asdict(self)}, indent=1, sort_keys=True)


def from_json(text: str) -> Plan:
    """The plan that `Plan.to_json` wrote, also an older one: what it does not have is as the classes' defaults say.

    Raises ValueError for a plan of another format version.
    """
    try:
        data = json.loads(text)
    except RecursionError:
        raise ValueError("too many brackets within one another") from None
    if data.pop("format", None) != PLAN_FORMAT:
        raise ValueError(f"the plan's format is not {PLAN_FORMAT}: agent and controller are of different versions")
    return Plan(
        network=_network(data.pop("network")),
        flows=tuple(FlowPlan(**flow) for flow in data.pop("flows")),
        hosts={name: _host(settings) for name, settings in data.pop("hosts").items()},
        traffic=tuple(TrafficPlan(**traffic) for traffic in data.pop("traffic", ())),
        captures=tuple(Capture(**capture) for capture in data.pop("captures")),
        modules=tuple(Module(**module) for module in data.pop("modules")),
        bpf=tuple(BpfObject(**one) for one in data.pop("bpf", ())),
        **data,
    )


def _host(data: dict[str, Any]) -> HostSettings:
    starts = tuple(_start(start) for start in data.pop("starts", ()))
    return HostSettings(**data, starts=starts)


def _start(data: dict[str, Any]) -> ConnectionStart:
    known: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}
    return ConnectionStart(**known)


def _network(data: Mapping[str, Any]) -> Network:
    links = tuple(
        Link(
            link["a"],
            link["b"],
            direction_from(link["forward"]),
            direction_from(link["backward"]),
            link.get("area", ""),
        )
        for link in data["links"]
    )
    bottleneck = None if data["bottleneck"] is None else Bottleneck(**data["bottleneck"])
    return Network(tuple(Node(**node) for node in data["nodes"]), links, bottleneck, data.get("ip", 4))
