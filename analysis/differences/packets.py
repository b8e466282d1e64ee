# SPDX-License-Identifier: Apache-2.0
"""The first packet that two runs' captures do not share."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from analysis.differences.capture import Packet, packets

AROUND = 3
"""Packets shown before and after the first that differs."""


@dataclass(frozen=True)
class Parting:
    """Where two captures of one interface part.

    number: of the packet, from 1; before: packets that both have; ours, theirs: from the first that differs on
    """

    interface: str
    number: int
    before: tuple[Packet, ...]
    ours: tuple[Packet, ...]
    theirs: tuple[Packet, ...]

    @property
    def time_ns(self) -> int:
        return min(side[0].time_ns for side in (self.ours, self.theirs) if side)

    def words(self, who: Mapping[str, str]) -> str:
        """What is different about it, in a sentence. who: address → the node that has it."""
        if not self.ours or not self.theirs:
            longer = "the second" if self.theirs else "the first"
            return f"{self.interface}: packet {self.number} exists only in {longer} run"
        one, other = self.ours[0], self.theirs[0]
        sender = str(one.fields.get("source", ""))
        sender = who.get(sender, sender) or "a node"
        did = f"{sender} sent it" if self.interface.startswith(f"{sender}-") else f"it came from {sender}"
        late_ns = other.time_ns - one.time_ns
        changed = [name for name in one.fields if one.fields[name] != other.fields.get(name)]
        changed += [name for name in other.fields if name not in one.fields]
        differing = [f"{name} {one.fields.get(name, 'none')}, {other.fields.get(name, 'none')}" for name in changed]
        if not changed and one.data != other.data:
            differing = ["other content"]
        parts = [f"{did} {_duration(abs(late_ns))} {'later' if late_ns > 0 else 'earlier'}"] if late_ns else []
        return f"{self.interface}: packet {self.number}: in the second run {'; '.join([*parts, *differing])}"


def parting(ours: Path, theirs: Path) -> Parting | None:
    """Where two captures part; None where they hold the same packets at the same times."""
    before: deque[Packet] = deque(maxlen=AROUND)
    both = itertools.zip_longest(packets(ours), packets(theirs))
    for number, (one, other) in enumerate(both, 1):
        if one == other and one is not None:
            before.append(one)
            continue
        following = [(one, other), *itertools.islice(both, AROUND)]
        return Parting(
            ours.stem,
            number,
            tuple(before),
            tuple(pair[0] for pair in following if pair[0] is not None),
            tuple(pair[1] for pair in following if pair[1] is not None),
        )
    return None


def first(ours: Path, theirs: Path) -> Parting | None:
    """The earliest parting of the captures that both raw folders have."""
    names = sorted({file.name for file in ours.glob("*.pcap")} & {file.name for file in theirs.glob("*.pcap")})
    partings = [found for name in names if (found := parting(ours / name, theirs / name)) is not None]
    return min(partings, key=lambda found: found.time_ns, default=None)


def _duration(nanoseconds: int) -> str:
    for unit, size in (("s", 10**9), ("ms", 10**6), ("µs", 10**3)):
        if nanoseconds >= size:
            return f"{nanoseconds / size:.9g} {unit}"
    return f"{nanoseconds} ns"
