# SPDX-License-Identifier: Apache-2.0
"""Wide-area path: the hops of a traceroute, each with its delay (Ho 2008 Table 6.1).

    s1 ══ r1 ── r2 ── … ── d1

A traceroute gives the round-trip time to each hop. Routers answer slower than they forward, so a hop counts with the least
time of it and of all behind it; half of the difference to the hop before is the delay of a link. The bottleneck is the
first router's link (Ho's machines had NICs of 100 Mbit/s).

Run it by hand with plain Mininet from the repository's root:
    sudo PYTHONPATH=. mn --custom topologies/wan.py --topo wan,path=nctu-ca --switch lxbr --controller none
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from agent.custom import expose
from base.errors import ParameterError
from base.quantities import delay_ns
from network.direction import Direction
from network.link_words import direction
from network.model import Bottleneck, Link, Network, Node

PATHS_MS = {
    "nctu-nctu": (0.30, 0.32, 0.37, 0.41),
    "nctu-ncue": (0.33, 0.28, 1.74, 1.91, 5.39, 6.33, 7.12, 9.56, 10.28),
    "nctu-ca": (0.32, 0.30, 1.53, 1.77, 1.82, 148.52, 152.83, 144.09, 155.37, 144.08, 140.12, 141.38, 196.86),
}
"""Ho 2008 Table 6.1 without its first line, the sender itself: round-trip times to each hop, ms."""


@dataclass(frozen=True)
class Parameters:
    """Texts with units as an experiment file has them.

    path: nctu-nctu, nctu-ncue, nctu-ca (computers B, C and D of Ho 2008), or own for rtts
    rtts: round-trip times to each hop with blanks between them, the receiver last, such as "0.3ms 1.5ms 148ms"
    rate, buffer, loss, queue: of the bottleneck, from the first router to the second; both ways
    """

    path: str = "nctu-ca"
    rtts: str = ""
    rate: str = "100mbit"
    buffer: str = "1000p"
    loss: str = "0%"
    queue: str = "droptail"


def network(parameters: Parameters) -> Network:
    """The path as nodes and links."""
    p = parameters
    if p.path not in (*PATHS_MS, "own"):
        raise ParameterError("path", f"{p.path!r}; allowed: {', '.join(PATHS_MS)}, own")
    if (p.path == "own") != bool(p.rtts):
        raise ParameterError("rtts", "goes together with path: own; give both or neither")
    if p.rtts:
        try:
            times = [delay_ns(text) for text in p.rtts.split()]
        except ValueError as error:
            raise ParameterError("rtts", str(error)) from error
    else:
        times = [round(ms * 1e6) for ms in PATHS_MS[p.path]]
    if not 2 <= len(times) <= 64:
        raise ParameterError("rtts", f"{len(times)} hops; allowed are 2 to 64")
    delays = hop_delays_ns(times)
    names = ["s1", *(f"r{i}" for i in range(1, len(times))), "d1"]
    bottleneck = direction({"rate": p.rate, "buffer": p.buffer, "loss": p.loss, "queue": p.queue})
    links = []
    for index, delay in enumerate(delays):
        one = replace(bottleneck, delay_ns=delay) if index == 1 else Direction(delay_ns=delay)
        links.append(Link(names[index], names[index + 1], one, one))
    nodes = tuple(Node(name, "host" if name in ("s1", "d1") else "router") for name in names)
    return Network(nodes, tuple(links), Bottleneck(names[1], names[2]))


def hop_delays_ns(rtts_ns: list[int]) -> list[int]:
    """One-way delay of each link from the round-trip times to its far end; their sum is half of the last one's."""
    least, reached = [], 1 << 62
    for rtt in reversed(rtts_ns):
        reached = min(reached, rtt)
        least.append(reached // 2)
    least.reverse()
    return [here - before for before, here in zip([0, *least[:-1]], least, strict=True)]


topos = expose("wan", Parameters, network)
