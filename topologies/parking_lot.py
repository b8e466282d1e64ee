# SPDX-License-Identifier: Apache-2.0
"""Parking lot: a long path over several routers, cross traffic over it and over each link (Yu 2009 Figs 4-20 and 4-33).

          x1 … xn   s1        c1 s2       c2 s3        c3 s4            c4   y1 … yn
               └────┴── r1 ══ └──┴─ r2 ══ └──┴─ r3 ══ └──┴─ r4 ══ r5 ──┴─────┘
    s ──────────────────┘                                          └────────────── c

Sender i sends over link i to client i behind the next router. Yu's fifth pair has no fifth link; it goes over all of
them (its place in the figure is lost in the copy). The defaults are Fig 4-20's; Fig 4-33 is rate=25mbit … 400mbit, delay=50ms,
buffer=500p, access_buffer=500p.

Run it by hand with plain Mininet from the repository's root:
    sudo PYTHONPATH=. mn --custom topologies/parking_lot.py --topo parking_lot,rate=10mbit --switch lxbr --controller none
"""

from __future__ import annotations

from dataclasses import dataclass

from agent.custom import expose
from base.errors import ParameterError
from network.link_words import LinkTexts, rate_and_delay
from network.model import Bottleneck, Link, Network, Node


@dataclass(frozen=True)
class Parameters(LinkTexts):
    """Texts with units as an experiment file has them; those of LinkTexts are every link between two routers.

    routers: 3 to 100
    cross: pairs of cross traffic over the whole path (x to y), 0 to 200
    access_rate, access_delay, access_buffer: of the hosts' links
    """

    rate: str = "10mbit"
    delay: str = "10ms"
    buffer: str = "300p"
    routers: int = 5
    cross: int = 5
    access_rate: str = "50mbit"
    access_delay: str = "10ms"
    access_buffer: str = "300p"


def network(parameters: Parameters) -> Network:
    """The parking lot as nodes and links."""
    p = parameters
    for name, count, least, most in (("routers", p.routers, 3, 100), ("cross", p.cross, 0, 200)):
        if not least <= count <= most:
            raise ParameterError(name, f"{count}; allowed are {least} to {most}")
    middle = p.direction()
    parameter_names = {"rate": "access_rate", "delay": "access_delay", "buffer": "access_buffer"}
    access = rate_and_delay(p.access_rate, p.access_delay, parameter_names, p.access_buffer)
    last = p.routers
    attached = [("s", 1), ("c", last)]
    attached += [(f"x{i}", 1) for i in range(1, p.cross + 1)]
    attached += [(f"y{i}", last) for i in range(1, p.cross + 1)]
    for i in range(1, last):
        attached += [(f"s{i}", i), (f"c{i}", i + 1)]
    attached += [(f"s{last}", 1), (f"c{last}", last)]
    links = [Link(f"r{i}", f"r{i + 1}", middle, middle) for i in range(1, last)]
    links += [Link(host, f"r{at}", access, access) for host, at in attached]
    nodes = [*(Node(host) for host, _ in attached), *(Node(f"r{i}", "router") for i in range(1, last + 1))]
    return Network(tuple(nodes), tuple(links), Bottleneck("r1", "r2"))


topos = expose("parking_lot", Parameters, network)
