# SPDX-License-Identifier: Apache-2.0
"""FAST TCP as stated by Ho 2008 section 2.5; choices as in kernels/modules/tcp_fast.c."""

from __future__ import annotations

import math

from kernels.reference.base import Ack, RoundTrips


def update(W: float, base_rtt: float, rtt: float, alpha: float, gamma: float) -> float:
    return min(2 * W, (1 - gamma) * W + gamma * (base_rtt / rtt * W + alpha))


class Fast(RoundTrips):
    def __init__(self, cwnd: float = 10.0, now_s: float = 0.0, *, alpha: float = 100.0, gamma: float = 0.5) -> None:
        super().__init__(cwnd, now_s)
        self.alpha, self.gamma = alpha, gamma
        self.target = cwnd

    @property
    def window(self) -> int:
        return math.floor(self.cwnd + 1e-9)

    fills_window = True

    def on_ack(self, ack: Ack) -> None:
        if self.round.over(ack.delivered):
            if ack.limited:
                W = self.window
                fraction = self.target % 1 if math.floor(self.target) == W else 0.0
                rtt = math.fsum(self.rtts) / len(self.rtts) if self.rtts else self.base_rtt
                whole = update(W, self.base_rtt, rtt, self.alpha, self.gamma)
                self.target = min(whole + fraction, 2 * W)
            self._next_round(ack.delivered, ack.in_flight)
        if ack.limited:
            self.cwnd = float(max(2, min(math.floor(self.target), self.window + ack.acked)))

    def on_loss(self, now_s: float) -> None:
        self.ssthresh = self.target = float(max(2, self.window // 2))

    def on_recovered(self, delivered: int, in_flight: int) -> None:
        super().on_recovered(delivered, in_flight)
        self._next_round(delivered, in_flight)

    def on_timeout(self, delivered: int, in_flight: int) -> None:
        super().on_timeout(delivered, in_flight)
        self.target = 2.0
        self._next_round(delivered, in_flight)

    def on_undo(self) -> None:
        super().on_undo()
        self.target = self.cwnd
