# SPDX-License-Identifier: Apache-2.0
"""PaSt, paced start: Yu 2009, s4.6 and algorithm 3, and its source, Hu and Steenkiste 2003.

Of algorithm 3 the copy keeps its variables (input gap of this and the last round, output gap), the gap after the first
round, "out gap2", and the beginning of its comparison, "if prev_in_gap < ..."; there is no tolerance among them.  Twice the
output gap is read as the rule of each round, since the line stands before the comparison.  "The state
machine terminates when terminate is reached": here with the first train that does not come out wider, as the estimates of
Table 4-1 have it.  The source goes on: it halves the distance to the turning point until the last round.
"""

from __future__ import annotations

import dataclasses
import math

from kernels.reference.base import Ack, Reno


@dataclasses.dataclass
class Search:
    """The turning point between gaps that come out wider and gaps that do not."""

    rounds: int = 5
    second: float = 2.0
    """The second round's gap over what comes out of the first."""
    refine: bool = False
    """Whether the search goes on where a train does not come out wider."""
    round: int = 0
    gap: float = 0.0
    low: float = 0.0
    high: float | None = None

    def judge(self, output: float) -> float | None:
        """The round's output gap; returns the gap in the end, or None while there is another round to send."""
        if output > self.gap:
            self.low = self.gap
        else:
            self.high = self.gap
        self.round += 1
        if self.round >= self.rounds or (self.high is not None and not self.refine):
            return output if self.high is None else self.high
        if self.high is None:
            self.gap = output * (self.second if self.round == 1 else 2)
        else:
            self.gap = (self.low + self.high) / 2
        return None


class Past(Reno):
    """Gaps are in whole nanoseconds, as a sender's clock has them.

    "Each round terminates when all the ACKs are received" (page 97), and only then does the next train leave, all of it with
    its own gap: until then the window is what is left of the train.
    """

    def __init__(self, cwnd: float = 2.0, now_s: float = 0.0, *, new: bool = True) -> None:
        """new: whether the connection has sent no data yet; else it is Reno's."""
        super().__init__(cwnd, now_s)
        self.search: Search | None = Search() if new else None
        self.rtt_min = math.inf
        self.begun = 0
        self.first: tuple[int, int] | None = None

    def on_start(self, delivered: int, in_flight: int) -> None:
        if self.search is not None:
            self._round(delivered)

    def _round(self, delivered: int) -> None:
        assert self.search is not None
        self.begun, self.first = delivered, None
        self.search.gap = float(math.floor(self.search.gap))
        self.cwnd = float(2 << self.search.round)

    def forget_rtts(self) -> None:
        self.rtt_min = math.inf

    def on_sample(self, rtt_s: float | None, acked: int, now_s: float, *, recovering: bool = False) -> None:
        if rtt_s is not None:
            self.rtt_min = min(self.rtt_min, rtt_s)

    def on_ack(self, ack: Ack) -> None:
        if self.search is None:
            super().on_ack(ack)
        elif ack.delivered > self.begun:
            self._measure(ack.delivered, ack.in_flight, self.search)

    def _measure(self, delivered: int, in_flight: int, search: Search) -> None:
        train = 2 << search.round
        if self.first is None:
            self.first = (self.clock_ns, delivered)
        left = train - (delivered - self.begun)
        if left > 0 and in_flight:
            self.cwnd = float(left)
            return
        if left > 0:  # there was too little data for a train
            self._round(delivered)
            return
        span_ns, packets = self.clock_ns - self.first[0], delivered - self.first[1]
        gap_ns = search.judge(float(span_ns // packets)) if packets and span_ns else math.inf
        if gap_ns is None:
            self._round(delivered)
            return
        self.search, self.cwnd = None, float(train)
        if gap_ns < math.inf:
            self.ssthresh = float(max(2, math.floor(round(self.rtt_min * 1e9) / gap_ns)))

    def on_loss(self, now_s: float) -> None:
        if self.search is None:
            super().on_loss(now_s)
        else:
            self.ssthresh = max(2.0, float(1 << self.search.round))
        self.search = None
