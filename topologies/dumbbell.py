# SPDX-License-Identifier: Apache-2.0
"""Dumbbell: n senders and n receivers on either side of one bottleneck (Ho 2008 Figs 5.1 and 5.17).

    s1 ─┐                        ┌─ d1
    s2 ─┼─ r1 ══ bottleneck ══ r2 ┼─ d2
    sn ─┘                        └─ dn

Run it by hand with plain Mininet from the repository's root:
    sudo PYTHONPATH=. mn --custom topologies/dumbbell.py --topo dumbbell,rate=50mbit,delay=48ms --switch lxbr --controller none
"""

from __future__ import annotations

from dataclasses import dataclass

from agent.custom import expose
from base.errors import ParameterError
from network.direction import Direction
from network.link_words import LinkTexts, per_item, rate_and_delay
from network.model import Bottleneck, Link, Network, Node


@dataclass(frozen=True)
class Parameters(LinkTexts):
    """Texts with units as an experiment file has them; those of LinkTexts are the bottleneck's, the same both ways.

    Each of the others is one text for all pairs, or one per pair with blanks between them, such as "1ms 5ms 10ms".

    pairs: senders and receivers on each side, 1 to 1000; flows from d to s go the reverse way
    access_rate, access_delay: of the senders' links and, unless they have their own, of the receivers';
        access_rate "none" is as fast as the kernel moves packets
    receiver_rate, receiver_delay: of the receivers' links; empty: the senders'
    access_buffer: queue in front of an access link; empty: one that never drops
    """

    pairs: int = 1
    access_rate: str = "1gbit"
    access_delay: str = "1ms"
    receiver_rate: str = ""
    receiver_delay: str = ""
    access_buffer: str = ""


def network(parameters: Parameters) -> Network:
    """The dumbbell as nodes and links."""
    p = parameters
    if not 1 <= p.pairs <= 1000:
        raise ParameterError("pairs", f"{p.pairs}; allowed are 1 to 1000")
    middle = p.direction()
    senders = _access(p, "access_rate", "access_delay")
    receivers = _access(
        p,
        "receiver_rate" if p.receiver_rate else "access_rate",
        "receiver_delay" if p.receiver_delay else "access_delay",
    )
    names = range(1, p.pairs + 1)
    nodes = [
        *(Node(f"s{i}") for i in names),
        Node("r1", "router"),
        Node("r2", "router"),
        *(Node(f"d{i}") for i in names),
    ]
    links = [Link(f"s{i}", "r1", link, link) for i, link in zip(names, senders, strict=True)]
    links.append(Link("r1", "r2", middle, middle))
    links += [Link("r2", f"d{i}", link, link) for i, link in zip(names, receivers, strict=True)]
    return Network(tuple(nodes), tuple(links), Bottleneck("r1", "r2"))


def _access(p: Parameters, rate: str, delay: str) -> list[Direction]:
    rates, delays = (per_item(getattr(p, name), p.pairs, name) for name in (rate, delay))
    directions = []
    for one_rate, one_delay in zip(rates, delays, strict=True):
        buffer = p.access_buffer if one_rate != "none" else ""
        directions.append(
            rate_and_delay(one_rate, one_delay, {"rate": rate, "delay": delay, "buffer": "access_buffer"}, buffer)
        )
    return directions


topos = expose("dumbbell", Parameters, network)
