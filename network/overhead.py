# SPDX-License-Identifier: Apache-2.0
"""Where a host's processing time per packet is spent: where its packets are timed anyway, so that nothing more wakes up.

A host whose own link has a delay or a rate takes its time there, before a packet leaves it. One whose link has neither takes it
before a packet reaches it, at the nearest links with a delay or a rate; hosts behind the same one share its draws.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from network.direction import Direction
from network.model import Network
from network.tc import paced_by_own

Hop = tuple[str, str]


def with_overhead(network: Network, hosts: Iterable[str], most_ns: int) -> Network:
    """The network whose `hosts` take up to `most_ns` for a packet, drawn evenly."""
    directions = {}
    for link in network.links:
        directions[link.a, link.b], directions[link.b, link.a] = link.forward, link.backward
    chosen = {hop for host in hosts for hop in _places(network, directions, host)}

    def changed(a: str, b: str, direction: Direction) -> Direction:
        takes_it = (a, b) in chosen and _takes_time(direction)
        return replace(direction, overhead_ns=most_ns) if takes_it else direction

    links = tuple(
        replace(link, forward=changed(link.a, link.b, link.forward), backward=changed(link.b, link.a, link.backward))
        for link in network.links
    )
    return replace(network, links=links)


def _places(network: Network, directions: dict[Hop, Direction], host: str) -> set[Hop]:
    """Hops on which a host's time per packet is spent; none where nothing on its ways is timed."""
    own = {(host, peer) for peer in network.neighbours[host] if _is_timed(directions[host, peer])}
    if own:
        return own
    places, seen, edge = set(), {host}, [host]
    while edge:
        following = []
        for node in edge:
            for peer in network.neighbours[node]:
                if _is_timed(directions[peer, node]):
                    places.add((peer, node))
                elif peer not in seen:
                    seen.add(peer)
                    following.append(peer)
        edge = following
    return places


def _is_timed(direction: Direction) -> bool:
    """Whether each packet waits for a timer on the wire; warp_rate's timer stands before it."""
    paced = direction.rate_bps is not None and not paced_by_own(direction) and not direction.polices
    return direction.delay_ns > 0 or paced


def _takes_time(direction: Direction) -> bool:
    """Whether the wire can take it. Jitter and aggregation move packets themselves; those that overtake or come twice are netem's."""
    moved = direction.jitter is not None or direction.aggregate_ns > 0
    return not moved and not direction.reorder and not direction.duplicate
