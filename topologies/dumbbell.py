# SPDX-License-Identifier: Apache-2.0
"""Dumbbell: n senders and n receivers on either side of one bottleneck (Ho 2008 Fig 5.1).

    s1 ─┐                        ┌─ d1
    s2 ─┼─ r1 ══ bottleneck ══ r2 ┼─ d2
    sn ─┘                        └─ dn

Run it by hand with plain Mininet from the repository's root:
    sudo PYTHONPATH=. mn --custom topologies/dumbbell.py --topo dumbbell,rate=50mbit,delay=48ms --switch lxbr --controller none
"""

from __future__ import annotations

from dataclasses import dataclass

from testbed.quantities import buffer_size, delay_ns, rate_bps, ratio
from topologies.model import Bottleneck, Buffer, Direction, Link, Network, Node
from topologies.registry import expose


@dataclass(frozen=True)
class Parameters:
    """Texts with units as an experiment file has them.

    pairs: senders and receivers on each side, 1 to 1000
    rate, delay, buffer, loss: of the bottleneck, each way; buffer is that of r1 towards r2, and of r2 towards r1
    access_rate, access_delay: of every other link; access_rate "none" is as fast as the kernel moves packets
    """

    pairs: int = 1
    rate: str = "50mbit"
    delay: str = "48ms"
    buffer: str = "250p"
    loss: str = "0%"
    access_rate: str = "1gbit"
    access_delay: str = "1ms"


def network(parameters: Parameters) -> Network:
    """The dumbbell as nodes and links."""
    p = parameters
    if not 1 <= p.pairs <= 1000:
        raise ValueError(f"pairs: {p.pairs}; allowed are 1 to 1000")
    middle = Direction(rate_bps(p.rate), Buffer(*buffer_size(p.buffer)), delay_ns(p.delay), ratio(p.loss))
    access = Direction(None if p.access_rate == "none" else rate_bps(p.access_rate), None, delay_ns(p.access_delay))
    senders = [f"s{i + 1}" for i in range(p.pairs)]
    receivers = [f"d{i + 1}" for i in range(p.pairs)]
    nodes = (
        [Node(name) for name in senders] + [Node("r1", "router"), Node("r2", "router")] + [Node(n) for n in receivers]
    )
    links = [Link(name, "r1", access, access) for name in senders]
    links.append(Link("r1", "r2", middle, middle))
    links += [Link("r2", name, access, access) for name in receivers]
    return Network(tuple(nodes), tuple(links), Bottleneck("r1", "r2"))


topos = expose("dumbbell", Parameters, network)
