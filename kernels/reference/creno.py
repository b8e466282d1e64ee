# SPDX-License-Identifier: Apache-2.0
"""Classic Reno: RFC 2581 without NewReno and SACK, as Tokuda 2003 section 4.2 analyses it.

One loss in a window halves it, two quarter it; the third waits for the timer: ssthresh is an eighth, the window one packet.
"""

from __future__ import annotations

import math

from kernels.reference.base import Ack, Reno

MOST_FAST_RETRANSMITS = 2


class ClassicReno(Reno):
    def __init__(
        self,
        cwnd: float = 10.0,
        now_s: float = 0.0,
        *,
        ssthresh: float = math.inf,
        most: int = MOST_FAST_RETRANSMITS,
    ) -> None:
        """most: fast retransmits in one window; 1 is ns-2's bugFix_"""
        super().__init__(cwnd, now_s)
        self.ssthresh = ssthresh
        self.most = most
        self.recovering = False
        self.retransmits = 0
        self.window_end = 0

    def on_ack(self, ack: Ack) -> None:
        """One packet per ACK in slow start and per window of ACKs after it, however many packets an ACK covers."""
        if not ack.limited:
            return
        if self.slow_start:
            self.grow_slow_start(1)
        else:
            self.grow_avoidance(1)

    def on_fast_retransmit(self, una: int, nxt: int) -> None:
        """Of one window only so many packets are repaired without the timer."""
        if self.retransmits and (una - self.window_end) % 2**32 < 2**31:
            self.retransmits = 0
        if not self.retransmits:
            self.window_end = nxt
        self.retransmits += 1
        self.recovering = True
        if self.retransmits > self.most:
            self.wrong.append(f"fast retransmit {self.retransmits} in one window")

    def on_recovered(self, delivered: int, in_flight: int) -> None:
        super().on_recovered(delivered, in_flight)
        self.recovering = False

    def on_timeout(self, delivered: int, in_flight: int) -> None:
        if self.recovering:  # the repair was lost: no on_loss() came before
            self.ssthresh = max(2.0, self.ssthresh // 2)
        self.recovering = False
        self.retransmits = 0
        super().on_timeout(delivered, in_flight)
