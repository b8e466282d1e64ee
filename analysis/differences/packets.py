# SPDX-License-Identifier: Apache-2.0
"""The first packet that two runs' captures do not share."""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from analysis.differences.capture import Packet, captures, packets
from analysis.differences.names import Names

AROUND = 3
"""Packets shown before and after the first that differs."""
HISTORY = 4096
"""Packets looked through for what arrived last."""
QUIET_NS = 1_000_000
"""Without a packet for so long, what a node sends is no answer: acknowledgements and hosts that take time are faster."""


@dataclass(frozen=True)
class Parting:
    """Where two captures of one interface part.

    number: of the packet, from 1; history: packets that both have; ours, theirs: from the first that differs on
    """

    interface: str
    number: int
    history: tuple[Packet, ...]
    ours: tuple[Packet, ...]
    theirs: tuple[Packet, ...]

    @property
    def before(self) -> tuple[Packet, ...]:
        return self.history[-AROUND:]

    @property
    def time_ns(self) -> int:
        return min(side[0].time_ns for side in (self.ours, self.theirs) if side)

    def words(self, names: Names) -> str:
        """What is different about it, in a sentence."""
        place = f"{self.interface}: packet {self.number}"
        if not self.ours or not self.theirs:
            longer = "the second" if self.theirs else "the first"
            what = names.what((self.ours or self.theirs)[0])
            return f"{place}{what and f', {what},'} exists only in {longer} run"
        one, other = self.ours[0], self.theirs[0]
        parts = [*self._times(one, other, names), *_contents(one, other)]
        what = names.what(one)
        return f"{place}{what and f', {what}'}: in the second run {'; '.join(parts)}"

    def _times(self, one: Packet, other: Packet, names: Names) -> list[str]:
        """Who sent it later or earlier, and whether anything had made it send."""
        if one.time_ns == other.time_ns:
            return []
        late_ns, sender = other.time_ns - one.time_ns, names.sender(one)
        when = f"{_duration(abs(late_ns))} {'later' if late_ns > 0 else 'earlier'}"
        if not self.interface.startswith(f"{sender}-"):
            return [f"it came from {sender} {when}"]
        said = f"{sender} sent it {when}"
        arrived = [packet.time_ns for packet in self.history if names.sender(packet) != sender]
        if not arrived:
            return [said]
        quiet_ns = min(one.time_ns, other.time_ns) - arrived[-1]
        if quiet_ns < QUIET_NS:
            return [said, f"a packet had arrived at {sender} {_duration(quiet_ns)} before"]
        return [said, f"nothing had arrived at {sender} for {_duration(quiet_ns)}, so {names.program(one)} woke {when}"]


def _contents(one: Packet, other: Packet) -> list[str]:
    """Which fields of the headers differ, or what else does."""
    changed = [name for name in one.fields if one.fields[name] != other.fields.get(name)]
    changed += [name for name in other.fields if name not in one.fields]
    if changed:
        return [f"{name} {one.fields.get(name, 'none')}, {other.fields.get(name, 'none')}" for name in changed]
    if one.payload != other.payload:
        pairs = itertools.zip_longest(one.payload, other.payload)
        first_byte = next(number for number, (mine, yours) in enumerate(pairs, 1) if mine != yours)
        return [f"other payload from its byte {first_byte} on"]
    return ["other content"] if one.data != other.data else []


def parting(ours: Path, theirs: Path) -> Parting | None:
    """Where two captures part; None where they hold the same packets at the same times."""
    before: deque[Packet] = deque(maxlen=HISTORY)
    both = itertools.zip_longest(packets(ours), packets(theirs))
    for number, (one, other) in enumerate(both, 1):
        if one == other and one is not None:
            before.append(one)
            continue
        following = [(one, other), *itertools.islice(both, AROUND)]
        return Parting(
            ours.name.partition(".pcap")[0],
            number,
            tuple(before),
            tuple(pair[0] for pair in following if pair[0] is not None),
            tuple(pair[1] for pair in following if pair[1] is not None),
        )
    return None


def first(ours: Path, theirs: Path) -> Parting | None:
    """The earliest parting of the captures that both raw folders have."""
    mine, yours = captures(ours), captures(theirs)
    partings = [one for name in sorted(mine.keys() & yours) if (one := parting(mine[name], yours[name])) is not None]
    return min(partings, key=lambda one: one.time_ns, default=None)


def _duration(nanoseconds: int) -> str:
    for unit, size in (("s", 10**9), ("ms", 10**6), ("µs", 10**3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.9g} {unit}"
    return f"{nanoseconds} ns"
