# SPDX-License-Identifier: Apache-2.0
"""The model of a network: nodes, links and the behaviour of each direction of a link.

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
from network.frames import FULL_FRAME_BYTES
from network.impairments import (
    CHANCE_BYTES,
    DROPTAIL,
    FourState,
    GilbertElliott,
    Jitter,
    Queue,
    RateTrace,
    Steps,
    loss_by_size,
)

T = TypeVar("T")

MOST_LINKS = 1 << 16
"""MAC addresses number links with 16 bits; addresses would suffice for more."""


@dataclass(frozen=True)
class Buffer:
    """A drop-tail buffer that holds exactly `size` packets or bytes (frames with their Ethernet header)."""

    size: int
    unit: str  # "packets" or "bytes"

    def packets(self, frame_bytes: int) -> float:
        """How many frames of that length fit."""
        return self.size if self.unit == "packets" else self.size / frame_bytes

    @property
    def full_bytes(self) -> int:
        """What it holds when it is full of the longest frames."""
        return self.size * FULL_FRAME_BYTES if self.unit == "packets" else self.size


@dataclass(frozen=True)
class Direction:
    """One direction of a link.

    rate_bps: bits per second of Ethernet frames, None for as fast as the kernel moves packets; the highest of a rate
        that changes
    buffer: queue in front of the link, None where the rate is None
    delay_ns: propagation delay without its jitter; the longest of a delay that changes
    loss: probability that a packet is lost on the wire, 0 to 1, independent of all others
    varying_rate, varying_delay, varying_loss: how they change; values in bit/s, ns, 0 to 1
    burst_loss: loss with a memory
    bit_errors: bit error rate; a frame is lost with its first wrong bit
    queue: how the buffer is managed
    jitter: random part of the delay
    aggregate_ns: how long packets wait at most for those behind them, with which they arrive together, in order
    reorder: share of packets that overtake all those in flight
    duplicate, corrupt: share of packets that arrive twice, or with one wrong bit
    ack_wait_ns: how long the ACK of a packet waits for that of the next, at the receiver that sends it; None: not at all
    overhead_ns: longest time that a host at the link takes for a packet once the run has started, drawn evenly from 0 on;
        where the delay is timed anyway (network.overhead)
    straight: whether packets go from their node into the wire without a hand-over in between (network.one_event)
    ahead: whether the buffer knows at once when a packet will leave it, and the wire counts from there (network.one_event)
    """

    rate_bps: int | None = None
    buffer: Buffer | None = None
    delay_ns: int = 0
    loss: float = 0.0
    varying_rate: Steps | RateTrace | None = None
    varying_delay: Steps | None = None
    varying_loss: Steps | None = None
    burst_loss: GilbertElliott | FourState | None = None
    bit_errors: float = 0.0
    queue: Queue = DROPTAIL
    jitter: Jitter | None = None
    reorder: float = 0.0
    duplicate: float = 0.0
    corrupt: float = 0.0
    ack_wait_ns: int | None = None
    overhead_ns: int = 0
    aggregate_ns: int = 0
    straight: bool = False
    ahead: bool = False

    def serialisation_ns(self, frame_bytes: int) -> int:
        """Time on the wire of one frame before the run starts, ns; 0 for a trace, whose gaps `idle_ns` knows, and for a policer."""
        rate = self.rate_bps
        if isinstance(self.varying_rate, Steps):
            rate = int(self.varying_rate.values[0])
        elif self.varying_rate is not None or self.polices:
            rate = None
        return frame_bytes * 8 * 10**9 // rate if rate else 0

    def idle_ns(self, frame_bytes: int) -> tuple[int, int]:
        """Shortest and longest time that one frame takes through the empty link before the run starts, ns."""
        delay_ns = self.delay_ns if self.varying_delay is None else int(self.varying_delay.values[0])
        low = high = delay_ns + self.serialisation_ns(frame_bytes)
        if isinstance(self.varying_rate, RateTrace):
            high += (1 + frame_bytes // CHANCE_BYTES) * self.varying_rate.longest_gap_ms * 10**6
        if self.jitter is not None:
            low, high = low + self.jitter.reach_ns[0], high + self.jitter.reach_ns[1]
        if self.reorder:
            low -= delay_ns
        high += self.aggregate_ns
        return max(0, low), high

    def mean_rate_bps(self, start_ns: int, end_ns: int) -> float | None:
        """Mean rate over a stretch of the run, bit/s."""
        if isinstance(self.varying_rate, Steps):
            return self.varying_rate.mean(start_ns, end_ns)
        return self.rate_bps if self.varying_rate is None else self.varying_rate.mean_bps

    def capacity_bytes(self, start_ns: int, end_ns: int) -> float:
        """What the link can send over a stretch of the run; 0 where it has no rate."""
        if isinstance(self.varying_rate, RateTrace):
            return self.varying_rate.bytes_between(start_ns, end_ns)
        return (self.mean_rate_bps(start_ns, end_ns) or 0) * (end_ns - start_ns) / 8e9

    def mean_loss(self, frame_bytes: int, start_ns: int = 0, end_ns: int = 0) -> float:
        """Expected share of frames of that length that are lost over a stretch of the run, as packets come evenly."""
        survival = (1 - self.loss) * (1 - loss_by_size(self.bit_errors, frame_bytes))
        if self.varying_loss is not None:
            survival *= 1 - self.varying_loss.mean(start_ns, end_ns)
        if self.burst_loss is not None:
            survival *= 1 - self.burst_loss.mean
        return 1 - survival

    @property
    def loses(self) -> bool:
        """Whether packets are lost on the wire on purpose."""
        return bool(self.loss or self.bit_errors or self.varying_loss or self.burst_loss)

    @property
    def polices(self) -> bool:
        """Whether the rate is enforced by dropping alone: what conforms passes at once, nothing waits."""
        return self.queue.kind == "policer"

    @property
    def needs_netem(self) -> bool:
        """Whether the wire has anything that netem does, apart from the rate."""
        delay = self.delay_ns > 0 and self.varying_delay is None and not self.own_delay
        return bool(
            delay
            or self.loss
            or self.burst_loss
            or self.jitter
            or self.reorder
            or self.duplicate
            or self.corrupt
            or self.aggregate_ns
        )

    @property
    def fine_delay(self) -> bool:
        """Whether a constant delay has parts of a microsecond, which tc does not tell netem."""
        constant = self.varying_delay is None and self.jitter is None and not self.reorder and not self.aggregate_ns
        return constant and self.delay_ns > 1000 and self.delay_ns % 1000 != 0

    @property
    def is_plain(self) -> bool:
        """Whether nothing happens on the wire that only netem does."""
        draws = self.loss or self.burst_loss or self.duplicate or self.corrupt
        return not (draws or self.jitter or self.reorder or self.aggregate_ns)

    @property
    def without_netem(self) -> bool:
        """Whether the own wire has the constant delay and the rate, too: it does not round them to netem's 64 ns."""
        return self.straight and self.is_plain

    @property
    def own_delay(self) -> bool:
        """Whether a constant delay is the own wire's: netem does not take its parts of a microsecond, or its timer would be
        one more beside that of the processing time."""
        return self.fine_delay or self.overhead_ns > 0 or self.without_netem

    @property
    def needs_own_wire(self) -> bool:
        """Whether the wire has what netem does not know."""
        changes = self.varying_loss or self.varying_delay
        return bool(self.bit_errors or changes or self.fine_delay or self.overhead_ns or self.without_netem)

    @property
    def has_wire(self) -> bool:
        """Whether the direction needs a place of its own: for delay, loss, or the time that sending takes."""
        return self.needs_netem or self.needs_own_wire or self.rate_bps is not None


_PARTS: dict[str, tuple[tuple[str, Any], ...]] = {
    "buffer": (("size", Buffer),),
    "queue": (("kind", Queue),),
    "jitter": (("spread_ns", Jitter),),
    "varying_rate": (("at_ns", Steps), ("chance_ms", RateTrace)),
    "varying_delay": (("at_ns", Steps),),
    "varying_loss": (("at_ns", Steps),),
    "burst_loss": (("p13", FourState), ("p", GilbertElliott)),
}
"""What the fields of a Direction are made of, by a name that each of the kinds has."""


def direction_from(data: Mapping[str, Any]) -> Direction:
    """The direction that dataclasses.asdict made plain (lists or tuples alike)."""
    known = dict(data)
    for name, kinds in _PARTS.items():
        part = known.get(name)
        if part is not None:
            kind = next(kind for mark, kind in kinds if mark in part)
            known[name] = kind(**{k: tuple(v) if isinstance(v, list | tuple) else v for k, v in part.items()})
    return Direction(**known)


@dataclass(frozen=True)
class Link:
    """A link between two nodes: `forward` carries a → b, `backward` b → a.

    area: links of one area get neighbouring addresses, so that routers elsewhere need one route for all of them; an area
        within another is written behind it, as in t0.s2
    """

    a: str
    b: str
    forward: Direction = Direction()
    backward: Direction = Direction()
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
    first = network.interfaces[destination][0]
    here = source
    while here != destination:
        own = network.interfaces[here]
        if here == first.peer:
            interface = next(i for i in own if i.name == first.peer_interface)
        else:
            hop = _hop_to_nearer(network, here, destination, first.peer)
            interface = next(i for i in own if i.peer == hop)
        yield here, interface.peer, interface.egress
        here = interface.peer


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
