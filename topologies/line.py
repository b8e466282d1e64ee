# SPDX-License-Identifier: Apache-2.0
"""Line: sender, one router, receiver; the least that keeps a bottleneck away from the sender.

    s1 ── r1 ══ bottleneck ══ d1

Run it by hand with plain Mininet from the repository's root:
    sudo PYTHONPATH=. mn --custom topologies/line.py --topo line,rate=50mbit,delay=50ms --switch lxbr --controller none
"""

from __future__ import annotations

from dataclasses import dataclass

from agent.custom import expose
from network.link_words import LinkTexts
from network.model import Bottleneck, Link, Network, Node


@dataclass(frozen=True)
class Parameters(LinkTexts):
    """Texts with units as an experiment file has them: the bottleneck, the same both ways.

    The link between s1 and r1 has neither rate nor delay.
    """

    delay: str = "50ms"


def network(parameters: Parameters) -> Network:
    """The line as nodes and links."""
    middle = parameters.direction()
    nodes = (Node("s1"), Node("r1", "router"), Node("d1"))
    return Network(nodes, (Link("s1", "r1"), Link("r1", "d1", middle, middle)), Bottleneck("r1", "d1"))


topos = expose("line", Parameters, network)
