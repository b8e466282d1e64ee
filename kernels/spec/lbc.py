# SPDX-License-Identifier: Apache-2.0
"""Slow start with limited byte counting: RFC 3465 with L = 2, as in Yu 2009."""

from __future__ import annotations

from kernels.spec.base import Ack, Reno


class Lbc(Reno):
    def __init__(self, cwnd: float = 10.0, now_s: float = 0.0, *, L: int = 2, ssthresh: float | None = None) -> None:
        super().__init__(cwnd, now_s)
        if ssthresh is not None:
            self.ssthresh = ssthresh
        self.L = L
        self.lost = False

    def on_ack(self, ack: Ack) -> None:
        if not ack.limited:
            return
        if self.slow_start:
            self.grow_slow_start(min(ack.acked, 1 if self.lost else self.L))
        else:
            self.grow_avoidance(ack.acked)

    def on_loss(self, now_s: float) -> None:
        super().on_loss(now_s)
        self.lost = True
