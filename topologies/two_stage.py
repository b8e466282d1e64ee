# SPDX-License-Identifier: Apache-2.0
"""Two stages: fast hosts and slow hosts share a backbone link (Tokuda 2003 Fig 1).

    h1 … hn ── 1 Gbit/s ───┐                                        ┌── e1 … en
                           ra ══ 1 Gbit/s 25 ms ══ rb ── 5 ms ── rc ┤
    s1 … sm ── 100 Mbit/s ─┘                                        └── d1 … dm

h and e are the hosts that use HighSpeed TCP, s and d those that use Reno.

Run it by hand with plain Mininet from the repository's root:
    sudo PYTHONPATH=. mn --custom topologies/two_stage.py --topo two_stage,fast=2,slow=3 --switch lxbr --controller none
"""

from __future__ import annotations

from dataclasses import dataclass

from agent.custom import expose
from base.errors import ParameterError
from network.link_words import LinkTexts, rate_and_delay
from network.model import Bottleneck, Link, Network, Node


@dataclass(frozen=True)
class Parameters(LinkTexts):
    """Texts with units as an experiment file has them; those of LinkTexts are the link ra–rb, the same both ways.

    fast, slow: how many pairs of each kind, 0 to 200 (N_HS and N_Reno)
    fast_rate, slow_rate, access_delay, access_buffer: of the hosts' links; the thesis has no loss there (its s4.2)
    second_rate, second_delay: of the link rb–rc
    """

    rate: str = "1gbit"
    delay: str = "25ms"
    buffer: str = "4167p"
    fast: int = 1
    slow: int = 10
    fast_rate: str = "1gbit"
    slow_rate: str = "100mbit"
    access_delay: str = "5ms"
    access_buffer: str = "1000p"
    second_rate: str = "1gbit"
    second_delay: str = "5ms"


def network(parameters: Parameters) -> Network:
    """The two stages as nodes and links."""
    p = parameters
    for name, count in (("fast", p.fast), ("slow", p.slow)):
        if not 0 <= count <= 200:
            raise ParameterError(name, f"{count}; allowed are 0 to 200")
    if not p.fast + p.slow:
        raise ParameterError("fast", "without fast and slow hosts nobody sends; ask for at least one pair")
    first = p.direction()
    second = rate_and_delay(p.second_rate, p.second_delay, {"rate": "second_rate", "delay": "second_delay"})
    links, ends = [], []
    for count, rate, sender, receiver in ((p.fast, "fast_rate", "h", "e"), (p.slow, "slow_rate", "s", "d")):
        parameter_names = {"rate": rate, "delay": "access_delay", "buffer": "access_buffer"}
        access = rate_and_delay(getattr(p, rate), p.access_delay, parameter_names, p.access_buffer)
        for i in range(1, count + 1):
            links += [Link(f"{sender}{i}", "ra", access, access), Link("rc", f"{receiver}{i}", access, access)]
            ends += [f"{sender}{i}", f"{receiver}{i}"]
    links += [Link("ra", "rb", first, first), Link("rb", "rc", second, second)]
    nodes = [*(Node(name) for name in ends), *(Node(name, "router") for name in ("ra", "rb", "rc"))]
    return Network(tuple(nodes), tuple(links), Bottleneck("ra", "rb"))


topos = expose("two_stage", Parameters, network)
