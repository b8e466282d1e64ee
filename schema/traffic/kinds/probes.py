# SPDX-License-Identifier: Apache-2.0
"""Packets that measure: pairs and echo requests."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from schema.base import Time
from schema.traffic.entry import Entry, Packet, Times


class PacketPairs(Entry):
    """UDP packet pairs with given input gaps, one after the other; the output gaps are measured (Yu 2009 s4.4)."""

    kind: Literal["packet_pairs"]
    gaps: Annotated[list[Time], Field(min_length=1, max_length=1000)]
    every: Times = "1s"
    packet: Packet = "1000B"


class Ping(Entry):
    """ICMP echo requests: the round-trip time under load."""

    kind: Literal["ping"]
    every: Times = "100ms"
    packet: Packet = "84B"
