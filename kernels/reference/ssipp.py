# SPDX-License-Identifier: Apache-2.0
"""SSIPP, slow start with inverted packet pairs: Yu 2009, chapter 3; choices as in kernels/modules/tcp_ssipp.c."""

from __future__ import annotations

import dataclasses

from kernels.reference.base import Ack, Reno
from kernels.reference.inverted import Answer, Pairs


class Ssipp(Reno):
    grows_on_duplicates = True

    def __init__(self, cwnd: float = 10.0, now_s: float = 0.0, *, new: bool = True) -> None:
        """new: whether the connection has sent no data yet."""
        super().__init__(cwnd, now_s)
        self.pairs = Pairs()
        self.inverting = new
        self.grown = self.one = False

    def on_pair(self, seq: int, gap_s: float) -> None:
        if not self.inverting or not self.slow_start:
            self.wrong.append("pair outside of slow start")
        self.pairs.sent(seq, gap_s)

    def on_acknowledged(self, una: int, acked: int, now_s: float, *, limited: bool) -> None:
        self.grown = self.one = False
        if not self.inverting:
            return
        answer, pair = self.pairs.acknowledged(una, acked, now_s)
        if answer is Answer.FIRST and self.slow_start and limited:
            self.grow_slow_start(1)
            self.grown = True
        elif answer is Answer.SECOND:
            self.one = pair is not None and pair.answered_s is not None
        if answer is Answer.DUPLICATE or (
            answer is not Answer.FIRST and not self.slow_start and not self.pairs.under_way
        ):
            self.inverting = False

    def on_ack(self, ack: Ack) -> None:
        if not self.grown:
            super().on_ack(dataclasses.replace(ack, acked=1) if self.one and self.slow_start else ack)

    def on_loss(self, now_s: float) -> None:
        super().on_loss(now_s)
        self.inverting = False
