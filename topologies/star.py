# SPDX-License-Identifier: Apache-2.0
"""Star behind routers: one server, clients behind three routers, cross traffic over the first link (Yu 2009 Fig 2-2).

                x1 … xn              y1 … yn
                   │                    │
    s1 ─────────── r1 ══ bottleneck ══ r2 ── the same without queue ── r3 ── c1 … cm

Run it by hand with plain Mininet from the repository's root:
    sudo PYTHONPATH=. mn --custom topologies/star.py --topo star,rate=20mbit --switch lxbr --controller none
"""

from __future__ import annotations

from dataclasses import dataclass

from agent.custom import expose
from base.errors import ParameterError
from network.link_words import LinkTexts, rate_and_delay
from network.model import Bottleneck, Link, Network, Node


@dataclass(frozen=True)
class Parameters(LinkTexts):
    """Texts with units as an experiment file has them; those of LinkTexts are the links r1–r2 and r2–r3.

    clients, cross: how many clients (c) and pairs of cross traffic (x to y), 1 and 0 to 200
    access_rate, access_delay: of the hosts' links, which Yu 2009 does not name
    """

    rate: str = "20mbit"
    delay: str = "50ms"
    buffer: str = "50p"
    clients: int = 5
    cross: int = 5
    access_rate: str = "100mbit"
    access_delay: str = "1ms"


def network(parameters: Parameters) -> Network:
    """The star as nodes and links."""
    p = parameters
    for name, count, least in (("clients", p.clients, 1), ("cross", p.cross, 0)):
        if not least <= count <= 200:
            raise ParameterError(name, f"{count}; allowed are {least} to 200")
    middle = p.direction()
    access = rate_and_delay(p.access_rate, p.access_delay, {"rate": "access_rate", "delay": "access_delay"})
    attached = [("s1", "r1")]
    attached += [(f"x{i}", "r1") for i in range(1, p.cross + 1)]
    attached += [(f"y{i}", "r2") for i in range(1, p.cross + 1)]
    attached += [(f"c{i}", "r3") for i in range(1, p.clients + 1)]
    links = [Link(host, router, access, access) for host, router in attached]
    links += [Link("r1", "r2", middle, middle), Link("r2", "r3", middle, middle)]
    nodes = [*(Node(host) for host, _ in attached), *(Node(f"r{i}", "router") for i in (1, 2, 3))]
    return Network(tuple(nodes), tuple(links), Bottleneck("r1", "r2"))


topos = expose("star", Parameters, network)
