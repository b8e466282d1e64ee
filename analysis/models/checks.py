# SPDX-License-Identifier: Apache-2.0
"""What a calculation decides of a catalogue's entry: each check names its part, what the thesis prints and what was computed.

Printed numbers come from the catalogue's entry, never from here, so that a check cannot agree with a number that is not the thesis'.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from schema.catalogue import Entry

Kind = Literal["value", "order"]


@dataclass(frozen=True)
class Check:
    """part: of the entry; says: what was computed, in words; kind: whether a number or only a relation was compared.

    explained: where it does not hold, the calculation that shows why, and in which the printed result appears
    undecided: what was measured has an interval over the seeds that reaches the bound
    explains: it decides nothing: it shows why runs contradict the part, and is no claim of the thesis
    """

    part: str
    says: str
    holds: bool
    published: Any = None
    computed: Any = None
    kind: Kind = "value"
    reason: str = ""
    explained: str = ""
    undecided: bool = False
    explains: bool = False


Decider = Callable[[Entry], Iterator[Check]]
REGISTRY: dict[str, Decider] = {}
"""Of each entry that a calculation decides, the function that does it."""


def decides(entry: str) -> Callable[[Decider], Decider]:
    def register(function: Decider) -> Decider:
        REGISTRY[entry] = function
        return function

    return register


def deciders() -> tuple[str, ...]:
    return tuple(REGISTRY)


def printed(entry: Entry, key: str) -> Any:
    """A published number of the entry by its key."""
    numbers = entry.published.numbers
    assert isinstance(numbers, dict)
    return numbers[key]


def near(entry: Entry, key: str, computed: float, says: str, tolerance: float, reason: str = "") -> Check:
    """A number beside the printed one; tolerance: ours, a share of it."""
    value = float(printed(entry, key))
    holds = math.isclose(computed, value, rel_tol=tolerance)
    return Check(key, says, holds, value, computed, "value", reason or f"within {tolerance:.3g} of it (ours)")


def same(entry: Entry, key: str, computed: Sequence[float], says: str) -> Check:
    """A row of numbers that has to be the printed one."""
    row = [float(value) for value in printed(entry, key)]
    return Check(key, says, row == [float(value) for value in computed], row, list(computed))


def relation(part: str, says: str, holds: bool, computed: Any = None, reason: str = "") -> Check:
    """A claim without numbers."""
    return Check(part, says, holds, None, computed, "order", reason)
