# SPDX-License-Identifier: Apache-2.0
"""Inverted packet pairs: Yu 2009, chapter 3, algorithm 2; what an ACK says of them."""

from __future__ import annotations

import collections
import dataclasses
import enum


class Answer(enum.Enum):
    OTHER = 0
    FIRST = 1
    """The duplicate ACK that a pair's first packet provokes."""
    SECOND = 2
    """The pair is complete."""
    DUPLICATE = 3
    """A duplicate ACK that no pair explains."""


@dataclasses.dataclass
class Pair:
    """n and n + 1, sent as n + 1, n with a gap between; ``seq`` is n's first byte."""

    seq: int
    gap_s: float
    answered_s: float | None = None


def before(a: int, b: int) -> bool:
    """Sequence numbers modulo 2^32."""
    return (a - b) % 2**32 >= 2**31


class Pairs:
    """The list iv_dup_packets of the pairs under way."""

    def __init__(self) -> None:
        self.under_way: collections.deque[Pair] = collections.deque()
        self.una = -1

    def sent(self, seq: int, gap_s: float) -> None:
        self.under_way.append(Pair(seq, gap_s))

    def acknowledged(self, una: int, acked: int, now_s: float) -> tuple[Answer, Pair | None]:
        """An ACK of ``acked`` packets of new data up to ``una``."""
        duplicate, self.una = not acked and una == self.una, una
        ended = []
        while self.under_way and before(self.under_way[0].seq, una):
            ended.append(self.under_way.popleft())
        if not duplicate:
            return (Answer.SECOND, ended[0]) if len(ended) == 1 else (Answer.OTHER, None)
        if not self.under_way or self.under_way[0].seq != una or self.under_way[0].answered_s is not None:
            return Answer.DUPLICATE, None
        self.under_way[0].answered_s = now_s
        return Answer.FIRST, self.under_way[0]
