# SPDX-License-Identifier: Apache-2.0
"""Transit-stub: random graphs of transit domains with stub domains (Yu 2009 Figs 2-9 and 2-10).

After Zegura, Calvert and Bhattacharjee 1996. Addresses are hierarchical, so that a router needs few routes.

Each transit node has three stub domains of eight nodes, as in the sample configurations of GT-ITM: 200 nodes are one transit
domain of 8, 600 nodes three of 8. Transit nodes are t1, t2 …; node 3 of the second stub of t7 is t7b3.

Run it by hand with plain Mininet from the repository's root:
    sudo PYTHONPATH=. mn --custom topologies/transit_stub.py --topo transit_stub,nodes=50 --switch lxbr --controller none
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from agent.custom import expose
from base.errors import ParameterError
from base.quantities import delay_ns, parameter, ratio
from network.direction import Direction
from network.link_words import direction
from network.model import Bottleneck, Link, Network, Node

STUBS = "abc"
STUB_NODES = 8
FAMILY = 1 + len(STUBS) * STUB_NODES
"""A transit node with its stubs."""
DOMAIN_NODES = 8
Edge = tuple[int, int]


@dataclass(frozen=True)
class Parameters:
    """Texts with units as an experiment file has them.

    nodes: a multiple of 25, 25 to 1000
    seed: of the graph and its delays
    rate, buffer, loss, queue: of every link
    transit_delay, stub_delay: longest delay of a link between transit nodes, and of one in or to a stub; the shortest is
        a tenth of it
    transit_edges, stub_edges: share of the possible links within a transit or a stub domain that are there; every domain is
        connected in any case
    """

    nodes: int = 200
    seed: int = 1
    rate: str = "10mbit"
    buffer: str = "50p"
    loss: str = "0%"
    queue: str = "droptail"
    transit_delay: str = "50ms"
    stub_delay: str = "10ms"
    transit_edges: str = "60%"
    stub_edges: str = "42%"


def network(parameters: Parameters) -> Network:
    """The graph as nodes and links."""
    p = parameters
    if p.nodes % FAMILY or not FAMILY <= p.nodes <= 1000:
        raise ParameterError("nodes", f"{p.nodes}; a multiple of {FAMILY} from {FAMILY} to 1000 is needed")
    link = direction({"rate": p.rate, "buffer": p.buffer, "loss": p.loss, "queue": p.queue})
    longest = {name: parameter(p, name, delay_ns) for name in ("transit_delay", "stub_delay")}
    shares = {name: parameter(p, name, ratio) for name in ("transit_edges", "stub_edges")}
    draw = random.Random(p.seed)  # noqa: S311 — no secret: the same seed must give the same graph
    links: list[Link] = []

    def add(a: str, b: str, longest_ns: float, area: str) -> None:
        one: Direction = replace(link, delay_ns=1000 * draw.randint(int(longest_ns) // 10_000, int(longest_ns) // 1000))
        links.append(Link(a, b, one, one, area))

    transit = [f"t{i}" for i in range(1, p.nodes // FAMILY + 1)]
    domains = [transit[i : i + DOMAIN_NODES] for i in range(0, len(transit), DOMAIN_NODES)]
    for a, b in connected(draw, len(domains), 1.0):
        add(draw.choice(domains[a]), draw.choice(domains[b]), longest["transit_delay"], "")
    for number, domain in enumerate(domains):
        for a, b in connected(draw, len(domain), shares["transit_edges"]):
            add(domain[a], domain[b], longest["transit_delay"], f"d{number}")
        for hub in domain:
            for letter in STUBS:
                area = f"d{number}.{hub}.{letter}"
                names = [f"{hub}{letter}{i}" for i in range(1, STUB_NODES + 1)]
                add(hub, draw.choice(names), longest["stub_delay"], area)
                for a, b in connected(draw, STUB_NODES, shares["stub_edges"]):
                    add(names[a], names[b], longest["stub_delay"], area)
    stubs = [f"{hub}{letter}{i}" for hub in transit for letter in STUBS for i in range(1, STUB_NODES + 1)]
    nodes = tuple(Node(name, "router") for name in [*transit, *stubs])
    first = next((one for one in links if one.a in transit and one.b in transit), links[0])
    return Network(nodes, tuple(links), Bottleneck(first.a, first.b))


def connected(draw: random.Random, count: int, share: float) -> list[Edge]:
    """Links of a connected random graph: a random tree, and further ones until the expected share of all is there."""
    order = list(range(count))
    draw.shuffle(order)
    edges = {_edge(order[i], order[draw.randrange(i)]) for i in range(1, count)}
    possible = count * (count - 1) // 2
    rest = possible - len(edges)
    further = max(0.0, share * possible - len(edges)) / rest if rest else 0.0
    for a in range(count):
        for b in range(a + 1, count):
            if (a, b) not in edges and draw.random() < further:
                edges.add((a, b))
    return sorted(edges)


def _edge(a: int, b: int) -> Edge:
    return (a, b) if a < b else (b, a)


topos = expose("transit_stub", Parameters, network)
