# SPDX-License-Identifier: Apache-2.0
"""Testbed of four machines: A sends to B and C to D through one shaped router (Kato 2012 Fig 5.10).

    a ─┐                    ┌─ b
       ├─ r1 ══ shaper ══ r2┤
    c ─┘                    └─ d

Kato's router is one machine with dummynet; here the pipe in it is the link between r1 and r2.

Run it by hand with plain Mininet from the repository's root:
    sudo PYTHONPATH=. mn --custom topologies/testbed4.py --topo testbed4,rate=250mbit,rtt_ab=32ms --switch lxbr --controller none
"""

from __future__ import annotations

from dataclasses import dataclass

from agent.custom import expose
from base.errors import ParameterError
from base.quantities import delay_ns, parameter
from network.direction import Direction
from network.link_words import LinkTexts
from network.model import Bottleneck, Link, Network, Node


@dataclass(frozen=True)
class Parameters(LinkTexts):
    """Texts with units as an experiment file has them; those of LinkTexts are the shaper's, the same both ways.

    rtt_ab, rtt_cd: round-trip propagation time of each pair of machines (16, 32, 120, 240 and 320 ms in Kato 2012);
        that of the shaper's own delay, twice, is part of it
    """

    rate: str = "10mbit"
    delay: str = "0ms"
    buffer: str = "50p"
    rtt_ab: str = "16ms"
    rtt_cd: str = "16ms"


def network(parameters: Parameters) -> Network:
    """The four machines and the router as nodes and links."""
    p = parameters
    middle = p.direction()
    links = []
    for name, sender, receiver in (("rtt_ab", "a", "b"), ("rtt_cd", "c", "d")):
        rest_ns = parameter(p, name, delay_ns) - 2 * middle.delay_ns
        if rest_ns < 0:
            raise ParameterError(name, f"{getattr(p, name)} is less than twice the shaper's delay of {p.delay}")
        near, far = Direction(delay_ns=rest_ns // 4), Direction(delay_ns=rest_ns // 2 - rest_ns // 4)
        links += [Link(sender, "r1", near, near), Link("r2", receiver, far, far)]
    links.append(Link("r1", "r2", middle, middle))
    nodes = [*(Node(name) for name in "abcd"), Node("r1", "router"), Node("r2", "router")]
    return Network(tuple(nodes), tuple(links), Bottleneck("r1", "r2"))


topos = expose("testbed4", Parameters, network)
