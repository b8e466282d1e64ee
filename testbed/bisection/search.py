# SPDX-License-Identifier: Apache-2.0
"""Halve a line of revisions until those are left of which one made the difference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum


class Verdict(Enum):
    GOOD = "holds"
    BAD = "does not hold"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Found:
    """suspects: the revisions of which one is the first bad one, the oldest first; one where nothing had to be skipped."""

    suspects: tuple[str, ...]
    asked: int


def first_bad(line: Sequence[str], judge: Callable[[str], Verdict]) -> Found:
    """line: from a revision that is known to be good to one that is known to be bad, both included.

    As in git-bisect(1) it is taken that all before the first bad one are good and all after it are bad. A revision that cannot be
    judged is skipped and the nearest to the middle that can is asked instead.
    """
    low, high, asked = 0, len(line) - 1, 0
    skipped: set[int] = set()
    while left := [i for i in range(low + 1, high) if i not in skipped]:
        middle = min(left, key=lambda i: (abs(2 * i - low - high), i))
        asked += 1
        match judge(line[middle]):
            case Verdict.GOOD:
                low = middle
            case Verdict.BAD:
                high = middle
            case Verdict.SKIPPED:
                skipped.add(middle)
    return Found(tuple(line[low + 1 : high + 1]), asked)
