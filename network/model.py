# SPDX-License-Identifier: Apache-2.0
"""The model of a network: nodes, links, addresses, routes and paths; what a direction of a link does is in network.direction.

Pure data and pure functions. Runs both on the controlling host and inside a guest, so it needs the
standard library only.
"""

from __future__ import annotations

import functools
import ipaddress
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from network import ipv6
from network.aggregate import aggregate
from network.direction import MOST_DELAY_NS, UNSHAPED, Direction

T = TypeVar("T")

MOST_LINKS = 1 << 16
"""MAC addresses number links with 16 bits; addresses would suffice for more."""


@dataclass(frozen=True)
class Link:
    """A link between two nodes: `forward` carries a → b, `backward` b → a.

    area: links of one area get neighbouring addresses, so that routers elsewhere need one route for all of them; an area
        within another is written behind it, as in t0.s2
    """

    a: str
    b: str
    forward: Direction = UNSHAPED
    backward: Direction = UNSHAPED
    area: str = ""


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
    """A whole network; node names are unique and links connect known nodes (see `problems`).

    ip: the version of IP that flows and traffic use, 4 or 6
    """

    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    bottleneck: Bottleneck | None = None
    ip: int = 4

    @functools.cached_property
    def neighbours(self) -> dict[str, list[str]]:
        """Adjacency in the order in which the links were given."""
        table: dict[str, list[str]] = {node.name: [] for node in self.nodes}
        for link in self.links:
            table[link.a].append(link.b)
            table[link.b].append(link.a)
        return table

    @functools.cached_property
    def plans(self) -> dict[str, NodePlan]:
        """See `address_plan`."""
        return _plans(self)

    @functools.cached_property
    def interfaces(self) -> dict[str, list[Interface]]:
        """Of each node, in the order of its links; to be read only. Without the routes, which take longest in a large network."""
        return _interfaces(self)

    def first_hops(self, start: str) -> dict[str, str]:
        """For every other node the neighbour of `start` on the way there."""
        if start not in self._first_hops:
            self._first_hops[start] = _first_hops(self, start)
        return self._first_hops[start]

    @functools.cached_property
    def _first_hops(self) -> dict[str, dict[str, str]]:
        return _hops_of(tuple(node.name for node in self.nodes), tuple((link.a, link.b) for link in self.links))

    @functools.cached_property
    def _paths(self) -> dict[tuple[str, str], list[tuple[str, str, Direction]]]:
        return {}

    @functools.cached_property
    def _answers(self) -> dict[Hashable, Any]:
        return {}

    def once(self, question: Hashable, answer: Callable[[], T]) -> T:
        """What `answer` says of this network, remembered as long as the network is: cells of a sweep and rules ask again."""
        if question not in self._answers:
            self._answers[question] = answer()
        known: T = self._answers[question]
        return known

    def directions(self) -> Iterator[Direction]:
        """Both directions of every link."""
        for link in self.links:
            yield link.forward
            yield link.backward

    def problems(self) -> list[str]:
        """Everything that makes the network impossible to build, as sentences."""
        messages = []
        names = [node.name for node in self.nodes]
        known = Counter(names)
        for name in sorted(name for name, count in known.items() if count > 1):
            messages.append(f"node {name} is there twice")
        for name in names:
            if not name.isidentifier() or len(name) > 9:
                messages.append(f"node name {name!r}: letters, digits and _, at most 9 (interface names have 15)")
        for link in self.links:
            for end in (link.a, link.b):
                if end not in known:
                    messages.append(f"link {link.a}–{link.b}: there is no node {end}")
        if len(self.links) > MOST_LINKS:
            messages.append(f"{len(self.links)} links; at most {MOST_LINKS} have addresses")
        for link in self.links:
            if max(link.forward.delay_ns, link.backward.delay_ns) > MOST_DELAY_NS:
                messages.append(f"link {link.a}–{link.b}: a delay is at most {MOST_DELAY_NS / 1e9:g} s")
            if link.a == link.b:
                messages.append(f"link {link.a}–{link.b} goes to its own node")
        if not messages and names and len(reachable(self, names[0])) != len(names):
            missing = sorted(set(names) - reachable(self, names[0]))
            shown = ", ".join(missing[:10]) + (f" and {len(missing) - 10} more" if len(missing) > 10 else "")
            messages.append(f"no path from {names[0]} to {shown}; add a link between the two parts")
        return messages


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
    """Addresses and routes of one node.

    ip: 6 where the same are there as IPv6 addresses too (network.ipv6), which flows then use
    """

    node: Node
    interfaces: list[Interface] = field(default_factory=list)
    routes: list[Route] = field(default_factory=list)
    ip: int = 4

    @property
    def address(self) -> str:
        """The address that flows to this node use: its first interface's."""
        address = self.interfaces[0].address
        return ipv6.of(address) if self.ip == 6 else address


def reachable(network: Network, start: str) -> set[str]:
    return {start, *network.first_hops(start)}


def address_plan(network: Network) -> dict[str, NodePlan]:
    """Addresses, interface names, MAC addresses and routes of every node; to be read only.

    Every link gets a /30 of 10.0.0.0/8, its `a` end the first address: the k-th in the order of the links, or those of an
    area side by side. Routes follow the fewest hops, ties broken by the order of the links, as few routes as can say it. A
    host with one interface gets a default route.
    """
    return network.plans


def _plans(network: Network) -> dict[str, NodePlan]:
    plans = {node.name: NodePlan(node, network.interfaces[node.name], ip=network.ip) for node in network.nodes}
    numbers = {name: [_subnet_number(i) for i in plan.interfaces] for name, plan in plans.items()}
    for plan in plans.values():
        plan.routes.extend(_routes(network, numbers, plan))
    return plans


def _interfaces(network: Network) -> dict[str, list[Interface]]:
    found: dict[str, list[Interface]] = {node.name: [] for node in network.nodes}
    base = int(ipaddress.IPv4Address("10.0.0.0"))
    for index, (link, number) in enumerate(zip(network.links, _subnet_numbers(network.links), strict=True)):
        subnet = base + 4 * number
        first, second = (str(ipaddress.IPv4Address(subnet + i)) for i in (1, 2))
        names = [f"{end}-eth{len(found[end])}" for end in (link.a, link.b)]
        macs = [f"02:00:{index >> 8 & 255:02x}:{index & 255:02x}:00:0{i}" for i in (1, 2)]
        ends = (
            Interface(
                names[0], link.a, link.b, names[1], first, second, macs[0], macs[1], 30, link.forward, link.backward
            ),
            Interface(
                names[1], link.b, link.a, names[0], second, first, macs[1], macs[0], 30, link.backward, link.forward
            ),
        )
        found[link.a].append(ends[0])
        found[link.b].append(ends[1])
    return found


def _subnet_numbers(links: tuple[Link, ...]) -> list[int]:
    """The number of each link's /30; areas take a power of two of them each, at a multiple of it."""
    sizes: dict[str, int] = {}
    children: dict[str, list[str]] = {}
    for link in links:
        area = link.area
        while area not in sizes:
            sizes[area] = 0
            if area:
                children.setdefault(area.rpartition(".")[0], []).append(area)
                area = area.rpartition(".")[0]
        sizes[link.area] += 1
    room: dict[str, int] = {}
    inside: dict[str, dict[str, int]] = {}

    def measure(area: str) -> int:
        offsets, here = {}, 0
        for child in sorted(children.get(area, []), key=lambda name: -measure(name)):
            offsets[child] = here  # larger ones first, so each begins at a multiple of its size
            here += room[child]
        inside[area] = {**offsets, "": here}
        room[area] = 1 << max(0, here + sizes[area] - 1).bit_length()
        return room[area]

    starts = {"": 0}
    if sizes:
        measure("")
    for area in sorted(sizes, key=lambda name: name.count(".") + bool(name)):
        for child in children.get(area, []):
            starts[child] = starts[area] + inside[area][child]
    following = {area: starts[area] + inside[area][""] for area in sizes}
    numbers = []
    for link in links:
        numbers.append(following[link.area])
        following[link.area] += 1
    return numbers


def _subnet_number(interface: Interface) -> int:
    return (int(ipaddress.IPv4Address(interface.address)) - int(ipaddress.IPv4Address("10.0.0.0"))) // 4


def _routes(network: Network, numbers: Mapping[str, list[int]], plan: NodePlan) -> Iterator[Route]:
    if len(plan.interfaces) == 1:
        only = plan.interfaces[0]
        yield Route("default", only.peer_address, only.name)
        return
    direct: dict[str, Interface] = {}
    for interface in plan.interfaces:
        direct.setdefault(interface.peer, interface)
    own = set(numbers[plan.node.name])
    hops: dict[int, str] = {}
    for name, hop in network.first_hops(plan.node.name).items():
        for number in numbers[name]:
            if number not in own:
                hops.setdefault(number, hop)
    for prefix, hop in aggregate(hops):
        yield Route(prefix, direct[hop].peer_address, direct[hop].name)


@functools.lru_cache(maxsize=16)
def _hops_of(names: tuple[str, ...], links: tuple[tuple[str, str], ...]) -> dict[str, dict[str, str]]:
    """Where first hops of this graph are kept: its networks with other rates and delays have the same."""
    return {}


def _first_hops(network: Network, start: str) -> dict[str, str]:
    """For every other node the neighbour of `start` on the way there; nearest nodes first."""
    table = network.neighbours
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


def path(network: Network, source: str, destination: str) -> list[tuple[str, str, Direction]]:
    """The directions that a packet crosses, as (from, to, direction), along the routes of `address_plan`.

    Routes lead to the nearer end of the link that the destination's address belongs to, from where it is one hop more.
    """
    known = network._paths.get((source, destination))
    if known is None:
        known = network._paths[source, destination] = list(_path(network, source, destination))
    return list(known)


def _path(network: Network, source: str, destination: str) -> Iterator[tuple[str, str, Direction]]:
    here = source
    while here != destination:
        interface = _exit(network, here, network.interfaces[destination][0])
        yield here, interface.peer, interface.egress
        here = interface.peer


def _exit(network: Network, here: str, to: Interface) -> Interface:
    """The interface by which a packet to the address of `to` leaves `here`."""
    own = network.interfaces[here]
    if here == to.peer:
        return next(i for i in own if i.name == to.peer_interface)
    hop = _hop_to_nearer(network, here, to.node, to.peer)
    return next(i for i in own if i.peer == hop)


def source_interface(network: Network, source: str, destination: str) -> Interface:
    """The interface by which connections leave their source. They have its address: the kernel chooses it so."""
    return _exit(network, source, network.interfaces[destination][0])


def source_address(network: Network, source: str, destination: str) -> str:
    """The address that connections from `source` have there."""
    address = source_interface(network, source, destination).address
    return ipv6.of(address) if network.ip == 6 else address


def is_answered_by_the_same_link(network: Network, source: str, destination: str) -> bool:
    """Whether packets to the destination arrive by the interface by which its answers leave; nodes with several may have two ways."""
    arrival = path(network, source, destination)[-1][0]
    return _exit(network, destination, source_interface(network, source, destination)).peer == arrival


def _hop_to_nearer(network: Network, here: str, one: str, other: str) -> str:
    """The first hop from `here` to that one of two nodes which is nearer, by the order in which they are found."""
    ways = network.first_hops(here)
    if one not in ways or other not in ways or ways[one] == ways[other]:
        return ways[one] if one in ways else ways[other]
    return ways[next(name for name in ways if name in (one, other))]


def idle_rtt_ns(network: Network, a: str, b: str, frame_bytes: int) -> int:
    """Round-trip time of a frame of that length with an answer of the same length, empty network, ns.

    Without jitter, and with the longest of delays that change.
    """

    def added() -> int:
        there, back = path(network, a, b), path(network, b, a)
        return sum(d.delay_ns + d.serialisation_ns(frame_bytes) for _, _, d in there + back)

    return network.once(("idle RTT", a, b, frame_bytes), added)


def idle_rtt_bounds_ns(network: Network, a: str, b: str, frame_bytes: int) -> tuple[int, int]:
    """Shortest and longest round-trip time of a frame and its answer before the run starts, empty network, ns."""
    hops = path(network, a, b) + path(network, b, a)
    bounds = [direction.idle_ns(frame_bytes) for _, _, direction in hops]
    return sum(low for low, _ in bounds), sum(high for _, high in bounds)
