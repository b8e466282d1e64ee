# SPDX-License-Identifier: Apache-2.0
"""PaSt, paced start: algorithm 3 of Yu 2009 and its source; choices as in kernels/modules/tcp_past.c."""

from __future__ import annotations

import dataclasses
import math

from kernels.reference.base import Ack, Reno


@dataclasses.dataclass
class Search:
    """The turning point between gaps that come out wider and gaps that do not."""

    tolerance: float = 0.1
    rounds: int = 5
    round: int = 0
    gap: float = 0.0
    low: float = 0.0
    high: float | None = None

    def judge(self, output: float) -> float | None:
        """The round's output gap; returns the gap in the end, or None while there is another round to send."""
        wide = output > self.gap * (1 + self.tolerance)
        agree = not wide and output >= self.gap * (1 - self.tolerance)
        if wide:
            self.low = self.gap
        else:
            self.high = self.gap
        self.round += 1
        if agree or self.round >= self.rounds:
            return output if self.high is None else self.high
        if self.round == 1:
            self.gap = output / 2
        elif self.high is None:
            self.gap *= 2
        else:
            self.gap = (self.low + self.high) / 2
        return None


class Past(Reno):
    def __init__(self, cwnd: float = 2.0, now_s: float = 0.0) -> None:
        super().__init__(cwnd, now_s)
        self.search: Search | None = Search()
        self.rtt_min = math.inf
        self.begun = 0
        self.first: tuple[float, int] | None = None

    def on_start(self, delivered: int, in_flight: int) -> None:
        self._round(delivered)

    def _round(self, delivered: int) -> None:
        assert self.search is not None
        self.begun, self.first = delivered, None
        self.cwnd = float(2 << self.search.round)

    def on_sample(self, rtt_s: float | None, acked: int, now_s: float, *, recovering: bool = False) -> None:
        if rtt_s is not None:
            self.rtt_min = min(self.rtt_min, rtt_s)

    def on_ack(self, ack: Ack) -> None:
        if self.search is None:
            super().on_ack(ack)
        elif ack.delivered > self.begun:
            self._measure(ack, self.search)

    def _measure(self, ack: Ack, search: Search) -> None:
        if self.first is None:
            self.first = (ack.now_s, ack.delivered)
        if ack.delivered - self.begun < 2 << search.round:
            return
        span_s, packets = ack.now_s - self.first[0], ack.delivered - self.first[1]
        if not packets or span_s < 5e-7:
            self.search = None
            return
        gap = search.judge(span_s / packets)
        if gap is None:
            self._round(ack.delivered)
        else:
            self.search = None
            self.ssthresh = float(max(2, math.floor(self.rtt_min / gap)))

    def on_loss(self, now_s: float) -> None:
        super().on_loss(now_s)
        self.search = None
