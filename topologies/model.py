# SPDX-License-Identifier: Apache-2.0
"""What a network is: nodes, links and how each direction of a link behaves.

Pure data and pure functions. Runs both on the controlling host and inside a guest, so it needs the
standard library only.
"""

from __future__ import annotations

import ipaddress
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

FRAME_HEADER_BYTES = 14
"""Ethernet header, which tc counts in a packet's length (the frame check sequence is not counted)."""


@dataclass(frozen=True)
class Buffer:
    """A drop-tail buffer that holds exactly `size` packets or bytes (frames with their Ethernet header)."""

    size: int
    unit: str  # "packets" or "bytes"

    def packets(self, frame_bytes: int) -> float:
        """How many frames of that length fit."""
        return self.size if self.unit == "packets" else self.size / frame_bytes


@dataclass(frozen=True)
class Direction:
    """One direction of a link.

    rate_bps: bits per second of Ethernet frames, None for as fast as the kernel moves packets
    buffer: queue in front of the link, None where the rate is None
    delay_ns: propagation delay
    loss: probability that a packet is lost on the wire, 0 to 1
    """

    rate_bps: int | None = None
    buffer: Buffer | None = None
    delay_ns: int = 0
    loss: float = 0.0

    def serialisation_ns(self, frame_bytes: int) -> int:
        """Time on the wire of one frame, ns."""
        return 0 if self.rate_bps is None else frame_bytes * 8 * 10**9 // self.rate_bps

    @property
    def has_wire(self) -> bool:
        """Whether the direction needs a place of its own for delay or loss."""
        return self.delay_ns > 0 or self.loss > 0


@dataclass(frozen=True)
class Link:
    """A link between two nodes: `forward` carries a → b, `backward` b → a."""

    a: str
    b: str
    forward: Direction = Direction()
    backward: Direction = Direction()


@dataclass(frozen=True)
class Node:
    name: str
    kind: str = "host"  # "host" or "router"


@dataclass(frozen=True)
class Bottleneck:
    """The queue that an experiment is about: the egress of `node` towards `peer`."""

    node: str
    peer: str


@dataclass(frozen=True)
class Network:
    """A whole network; node names are unique and links connect known nodes (see `problems`)."""

    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    bottleneck: Bottleneck | None = None

    def problems(self) -> list[str]:
        """Everything that makes the network impossible to build, as sentences."""
        found = []
        names = [node.name for node in self.nodes]
        for name in sorted({n for n in names if names.count(n) > 1}):
            found.append(f"node {name} is there twice")
        for name in names:
            if not name.isidentifier() or len(name) > 9:
                found.append(f"node name {name!r}: letters, digits and _, at most 9 (interface names have 15)")
        for link in self.links:
            for end in (link.a, link.b):
                if end not in names:
                    found.append(f"link {link.a}–{link.b}: there is no node {end}")
        if not found and len(reachable(self, names[0])) != len(names):
            missing = sorted(set(names) - reachable(self, names[0]))
            found.append(f"no path from {names[0]} to {', '.join(missing)}")
        return found


@dataclass(frozen=True)
class Interface:
    """One end of a link as the kernel sees it."""

    name: str
    node: str
    peer: str
    peer_interface: str
    address: str
    peer_address: str
    mac: str
    peer_mac: str
    prefix_length: int
    egress: Direction
    ingress: Direction


@dataclass(frozen=True)
class Route:
    destination: str
    via: str
    interface: str


@dataclass
class NodePlan:
    """Addresses and routes of one node."""

    node: Node
    interfaces: list[Interface] = field(default_factory=list)
    routes: list[Route] = field(default_factory=list)

    @property
    def address(self) -> str:
        """The address that flows to this node use: its first interface's."""
        return self.interfaces[0].address


def neighbours(network: Network) -> dict[str, list[str]]:
    """Adjacency in the order in which the links were given."""
    table: dict[str, list[str]] = {node.name: [] for node in network.nodes}
    for link in network.links:
        table[link.a].append(link.b)
        table[link.b].append(link.a)
    return table


def reachable(network: Network, start: str) -> set[str]:
    table = neighbours(network)
    seen, queue = {start}, deque([start])
    while queue:
        for peer in table[queue.popleft()]:
            if peer not in seen:
                seen.add(peer)
                queue.append(peer)
    return seen


def address_plan(network: Network) -> dict[str, NodePlan]:
    """Addresses, interface names, MAC addresses and routes of every node.

    Link k gets the k-th /30 of 10.0.0.0/8, its `a` end the first address. Routes follow the fewest hops,
    ties broken by the order of the links. A host with one interface gets a default route.
    """
    plans = {node.name: NodePlan(node) for node in network.nodes}
    base = int(ipaddress.IPv4Address("10.0.0.0"))
    for index, link in enumerate(network.links):
        subnet = base + 4 * index
        first, second = (str(ipaddress.IPv4Address(subnet + i)) for i in (1, 2))
        names = [f"{end}-eth{len(plans[end].interfaces)}" for end in (link.a, link.b)]
        macs = [f"02:00:{index >> 8 & 255:02x}:{index & 255:02x}:00:0{i}" for i in (1, 2)]
        plans[link.a].interfaces.append(
            Interface(
                names[0], link.a, link.b, names[1], first, second, macs[0], macs[1], 30, link.forward, link.backward
            )
        )
        plans[link.b].interfaces.append(
            Interface(
                names[1], link.b, link.a, names[0], second, first, macs[1], macs[0], 30, link.backward, link.forward
            )
        )
    for plan in plans.values():
        plan.routes.extend(_routes(network, plans, plan))
    return plans


def _routes(network: Network, plans: dict[str, NodePlan], plan: NodePlan) -> Iterator[Route]:
    if len(plan.interfaces) == 1:
        only = plan.interfaces[0]
        yield Route("default", only.peer_address, only.name)
        return
    first_hop = _first_hops(network, plan.node.name)
    direct = {interface.peer: interface for interface in plan.interfaces}
    own = {_subnet(i) for i in plan.interfaces}
    done: set[str] = set()
    for name, hop in first_hop.items():
        for interface in plans[name].interfaces:
            subnet = _subnet(interface)
            if subnet not in own and subnet not in done:
                done.add(subnet)
                yield Route(subnet, direct[hop].peer_address, direct[hop].name)


def _first_hops(network: Network, start: str) -> dict[str, str]:
    """For every other node the neighbour of `start` on the way there; nearest nodes first."""
    table = neighbours(network)
    hops = {start: start}
    queue = deque([start])
    while queue:
        here = queue.popleft()
        for peer in table[here]:
            if peer not in hops:
                hops[peer] = peer if here == start else hops[here]
                queue.append(peer)
    del hops[start]
    return hops


def _subnet(interface: Interface) -> str:
    network = ipaddress.IPv4Interface(f"{interface.address}/{interface.prefix_length}").network
    return str(network)


def path(network: Network, source: str, destination: str) -> list[tuple[str, str, Direction]]:
    """The directions that a packet crosses, as (from, to, direction), along the routes of `address_plan`."""
    plans = address_plan(network)
    hops, here = [], source
    while here != destination:
        nxt = _first_hops(network, here)[destination]
        interface = next(i for i in plans[here].interfaces if i.peer == nxt)
        hops.append((here, nxt, interface.egress))
        here = nxt
    return hops


def idle_rtt_ns(network: Network, a: str, b: str, frame_bytes: int) -> int:
    """Round-trip time of a frame of that length with an answer of the same length, empty network, ns."""
    there, back = path(network, a, b), path(network, b, a)
    return sum(d.delay_ns + d.serialisation_ns(frame_bytes) for _, _, d in there + back)
