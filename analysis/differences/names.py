# SPDX-License-Identifier: Apache-2.0
"""Whose packets a run has: its nodes' addresses, and its flows with the programs that send them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from analysis.differences.capture import Packet

End = tuple[str, int]
"""Address and port."""


@dataclass(frozen=True)
class Names:
    """Address → node; source and destination of a flow's data → its name and its program."""

    nodes: Mapping[str, str]
    flows: Mapping[tuple[End, End], tuple[str, str]] = field(default_factory=dict)

    def sender(self, packet: Packet) -> str:
        address = str(packet.fields.get("source", ""))
        return self.nodes.get(address, address) or "a node"

    def what(self, packet: Packet) -> str:
        """Such as "data of f1"; nothing where no flow has it."""
        source, destination = self._ends(packet)
        if (source, destination) in self.flows:
            return f"{_kind(packet)} of {self.flows[source, destination][0]}"
        if (destination, source) in self.flows:
            return f"{_kind(packet)} in answer to {self.flows[destination, source][0]}"
        return ""

    def program(self, packet: Packet) -> str:
        """What may have woken to send it."""
        name, program = self.flows.get(self._ends(packet), ("", ""))
        return f"{program} or a timer of the kernel" if name else "a program or a timer of the kernel"

    @staticmethod
    def _ends(packet: Packet) -> tuple[End, End]:
        names = packet.fields
        first, second = (
            (str(names.get(side, "")), int(names.get(f"{side} port", 0))) for side in ("source", "destination")
        )
        return first, second


def _kind(packet: Packet) -> str:
    flags = str(packet.fields.get("flags", ""))
    for letter, name in (("S", "SYN"), ("R", "RST"), ("F", "FIN")):
        if letter in flags:
            return name
    return "data" if packet.fields.get("payload bytes") else "ACK"
