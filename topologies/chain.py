# SPDX-License-Identifier: Apache-2.0
"""Chain: a sender, a receiver, and any sequence of links between them (Ho 2008 Fig 5.15, Afifi 2014 topology 1).

    s1 ── r1 ── r2 ══ … ── d1

The default is Ho's wireless last hop. Its figure's rates and delays are lost in the copy; here they are those of the wired
bottleneck of Fig 5.1 in front of a wireless link of 54 Mbit/s. Its loss is for the experiment to say, by the packets' size as in
Ho 2008 5.4: `topology: {links: {r2-d1: {loss: bit-errors loss=1% of=1014B}}}`.

Run it by hand with plain Mininet from the repository's root:
    sudo PYTHONPATH=. mn --custom topologies/chain.py --topo chain --switch lxbr --controller none
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agent.custom import expose
from base.errors import ParameterError
from network.link_words import direction
from network.model import Bottleneck, Link, Network, Node

WIRELESS_LAST_HOP = (
    {"rate": "1gbit", "delay": "1ms"},
    {"rate": "50mbit", "delay": "48ms", "buffer": "250p"},
    {"rate": "54mbit", "delay": "1ms", "buffer": "250p"},
)


@dataclass(frozen=True)
class Parameters:
    """links: one mapping per link from the sender to the receiver, in the words of docs/links.md, the same both ways.

    The bottleneck is the first of the slowest links that have a rate; `topology.links` makes directions differ.
    """

    links: Sequence[Mapping[str, str]] = field(default_factory=lambda: WIRELESS_LAST_HOP)


def network(parameters: Parameters) -> Network:
    """The chain as nodes and links."""
    texts: object = parameters.links
    if not isinstance(texts, list | tuple):
        raise ParameterError(
            "links", "a list is needed, one mapping per link, such as [{rate: 10mbit, delay: 48ms, buffer: 250p}]"
        )
    if not 1 <= len(texts) <= 200:
        raise ParameterError("links", f"{len(texts)} links; allowed are 1 to 200")
    names = ["s1", *(f"r{i}" for i in range(1, len(texts))), "d1"]
    links = []
    for index, numbered in enumerate(texts):
        try:
            one = direction(numbered)
        except ParameterError as error:
            raise ParameterError(("links", index, *error.name), error.text) from error
        links.append(Link(names[index], names[index + 1], one, one))
    nodes = tuple(Node(name, "host" if name in ("s1", "d1") else "router") for name in names)
    limited = [link for link in links if link.forward.rate_bps is not None]
    slowest = min(limited, key=lambda link: link.forward.rate_bps or 0, default=links[0])
    return Network(nodes, tuple(links), Bottleneck(slowest.a, slowest.b))


topos = expose("chain", Parameters, network)
