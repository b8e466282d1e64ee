# SPDX-License-Identifier: Apache-2.0
"""Compound TCP as stated by Ho 2008 section 2.6; choices as in kernels/modules/tcp_ctcp.c."""

from __future__ import annotations

import math

from kernels.reference.base import Ack, Reno, RoundTrips


class Ctcp(RoundTrips, Reno):
    def __init__(
        self,
        cwnd: float = 10.0,
        now_s: float = 0.0,
        *,
        alpha: float = 0.125,
        beta: float = 0.5,
        gamma: float = 30.0,
        zeta: float = 1.0,
        k: float = 0.75,
    ) -> None:
        super().__init__(cwnd, now_s)
        self.alpha, self.beta, self.gamma, self.zeta, self.k = alpha, beta, gamma, zeta, k
        self.aimd = cwnd  # the paper's cwnd; self.cwnd is its win
        self.dwnd = 0.0

    def delay_window(self, win: float, rtt: float) -> float:
        """dwnd after a round without loss."""
        diff = win * (1 - self.base_rtt / rtt)
        if diff < self.gamma:
            return self.dwnd + max(0.0, self.alpha * math.pow(win, self.k) - 1)
        return max(0.0, self.dwnd - self.zeta * diff)

    def _follow(self) -> None:
        """Where the kernel shrank an unused window, the delay window goes first."""
        less = max(0, math.floor(self.aimd + 1e-9) + math.floor(self.dwnd + 1e-9) - self.window)
        delay = min(less, math.floor(self.dwnd + 1e-9))
        self.dwnd -= delay
        self.aimd -= less - delay

    def on_ack(self, ack: Ack) -> None:
        over = self.round.over(ack.delivered)
        if ack.limited:
            self._grow(ack.acked, over)
        if over:
            self._next_round(ack.delivered, ack.in_flight)

    def _grow(self, acked: int, over: bool) -> None:
        if self.slow_start:
            acked = self.grow_slow_start(acked)
            self.aimd, self.dwnd = float(self.window), 0.0
            if not acked:
                return
        self._follow()
        if over and self.rtts:
            self.dwnd = self.delay_window(self.whole_window, math.fsum(self.rtts) / len(self.rtts))
        self.aimd += acked / max(1, math.floor(self.aimd + 1e-9) + math.floor(self.dwnd + 1e-9))
        self.cwnd = float(max(2, math.floor(self.aimd + 1e-9) + math.floor(self.dwnd + 1e-9)))

    def on_loss(self, now_s: float) -> None:
        self._follow()
        win, whole = self.window, math.floor(self.aimd + 1e-9)
        self.dwnd = max(0.0, win * (1 - self.beta) - whole / 2)
        self.aimd = float(max(2, whole // 2))
        self.ssthresh = float(max(2, math.floor(self.aimd) + math.floor(self.dwnd)))

    def on_recovered(self, delivered: int, in_flight: int) -> None:
        super().on_recovered(delivered, in_flight)
        self._next_round(delivered, in_flight)

    def on_timeout(self, delivered: int, in_flight: int) -> None:
        super().on_timeout(delivered, in_flight)
        self.aimd, self.dwnd = 1.0, 0.0
        self._next_round(delivered, in_flight)

    def on_undo(self) -> None:
        """The delay window begins again: what it was is not kept."""
        super().on_undo()
        self.aimd, self.dwnd = self.cwnd, 0.0
