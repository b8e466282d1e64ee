# SPDX-License-Identifier: Apache-2.0
"""Which machine is which node of a plan, and what it needs to know of the cables.

For hosts whose network is made of machines (virtual ones, or a lab's): one node per machine. A link's delay and loss happen at
its router's end, where a wire's namespace stands between the router's queue and the cable; of two routers, at the first.
"""

from __future__ import annotations

from collections.abc import Mapping

from network.model import Network, address_plan
from plan.model import Cabling, Plan


def wire_places(network: Network) -> dict[int, str]:
    """Number of each link that delays or loses packets → the node at whose machine that happens.

    Raises ValueError for a link between two hosts: nothing may delay or drop on a sender's own machine.
    """
    kinds = {node.name: node.kind for node in network.nodes}
    places = {}
    for number, link in enumerate(network.links):
        if not (link.forward.has_wire or link.backward.has_wire):
            continue
        routers = [end for end in (link.a, link.b) if kinds[end] == "router"]
        if not routers:
            raise ValueError(
                f"{link.a}–{link.b}: a cable between two hosts cannot delay or lose packets; put a router between them"
            )
        places[number] = routers[0]
    return places


def problems(network: Network, most_cables: int | None = None) -> list[str]:
    """Why a network cannot be cabled, as sentences."""
    wrong = []
    try:
        wire_places(network)
    except ValueError as error:
        wrong.append(str(error))
    for name, plan in address_plan(network).items():
        if most_cables is not None and len(plan.interfaces) > most_cables:
            wrong.append(f"{name}: {len(plan.interfaces)} links, a machine has places for {most_cables}")
    return wrong


def cabling(plan: Plan, nics: Mapping[str, str]) -> dict[str, Cabling]:
    """What each node's machine is told.

    nics: interface of the address plan (such as r1-eth0) → name or MAC address of the machine's own interface
    """
    places, numbers = wire_places(plan.network), interface_links(plan.network)
    cablings = {}
    for name, node in address_plan(plan.network).items():
        own = [interface.name for interface in node.interfaces]
        cablings[name] = Cabling(
            node=name,
            nics={interface: nics[interface] for interface in own},
            numbers={interface: numbers[interface] for interface in own},
            wires=tuple(sorted(number for number, place in places.items() if place == name)),
        )
    return cablings


def interface_links(network: Network) -> dict[str, int]:
    """Interface of the address plan → number of its link."""
    ports = {node.name: 0 for node in network.nodes}
    numbers = {}
    for number, link in enumerate(network.links):
        for end in (link.a, link.b):
            numbers[f"{end}-eth{ports[end]}"] = number
            ports[end] += 1
    return numbers
