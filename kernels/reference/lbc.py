# SPDX-License-Identifier: Apache-2.0
"""Slow start with limited byte counting: RFC 3465 with L = 2, as in Yu 2009; and Reno that counts ACKs (RFC 2581)."""

from __future__ import annotations

from kernels.reference.base import Ack, Reno


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


class PerAck(Reno):
    """One packet per ACK in slow start, one per window of ACKs after: `perack`, the Reno of ns-2."""

    def on_ack(self, ack: Ack) -> None:
        if not ack.limited:
            return
        if self.slow_start:
            self.grow_slow_start(1)
        else:
            self.grow_avoidance(1)
