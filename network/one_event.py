# SPDX-License-Identifier: Apache-2.0
"""Which links of the virtual host need one event per packet: kernels/modules/um_link.c says how, this says where.

A chain of shaper, hand-over and wire has three for the same packets at the same nanoseconds (tests/guest/test_one_event.py).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from network.direction import Direction
from network.model import Network
from network.tc import counts_packets, paced_by_own

Hop = tuple[str, str]


def with_one_event(network: Network, captured: Collection[Hop]) -> Network:
    """The network whose links are timed once.

    captured: interfaces, by node and peer, at which packets are seen when they leave the buffer
    """
    routers = {node.name for node in network.nodes if node.kind == "router"}

    def changed(a: str, b: str, direction: Direction) -> Direction:
        if not direction.has_wire:
            return direction
        ahead = a in routers and (a, b) not in captured and is_known_ahead(direction)
        return replace(direction, straight=True, ahead=ahead)

    links = tuple(
        replace(link, forward=changed(link.a, link.b, link.forward), backward=changed(link.b, link.a, link.backward))
        for link in network.links
    )
    return replace(network, links=links)


def is_known_ahead(direction: Direction) -> bool:
    """Whether a packet's departure is known when it comes: a FIFO before a fixed rate, and nothing on the wire that only
    netem does."""
    if direction.rate_bps is None or direction.queue.kind != "droptail":
        return False
    elsewhere = paced_by_own(direction) or counts_packets(direction) or direction.polices
    return direction.is_plain and direction.ack_wait_ns is None and not elsewhere
