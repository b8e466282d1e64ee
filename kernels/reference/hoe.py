# SPDX-License-Identifier: Apache-2.0
"""Hoe's packet-pair slow start, as in Yu 2009 section 4.6; choices as in kernels/modules/tcp_hoe.c."""

from __future__ import annotations

from kernels.reference.base import Reno


class PairGap:
    """The time between the ACKs of two packets that were sent back to back and ACKed one by one."""

    def __init__(self, burst_s: float) -> None:
        self.burst_s = burst_s
        self.last: tuple[float, float] | None = None  # ACK time, RTT

    def sample(self, rtt_s: float | None, acked: int, now_s: float) -> float | None:
        last, self.last = self.last, None
        if acked != 1 or rtt_s is None:
            return None
        self.last = (now_s, rtt_s)
        if last is None:
            return None
        apart = (now_s - rtt_s) - (last[0] - last[1])
        return now_s - last[0] if -1e-9 <= apart <= self.burst_s + 1e-9 else None


class Hoe(Reno):
    def __init__(self, cwnd: float = 10.0, now_s: float = 0.0, *, burst_s: float = 50e-6) -> None:
        super().__init__(cwnd, now_s)
        self.pairs = PairGap(burst_s)
        self.done = False

    def on_sample(self, rtt_s: float | None, acked: int, now_s: float, *, recovering: bool = False) -> None:
        if self.done:
            return
        first_rtt = self.pairs.last[1] if self.pairs.last else 0.0
        gap = self.pairs.sample(rtt_s, acked, now_s)
        if gap:
            self.ssthresh = max(2.0, float(round(first_rtt * 1e6) // round(gap * 1e6)))
            self.done = True

    def on_loss(self, now_s: float) -> None:
        super().on_loss(now_s)
        self.done = True
