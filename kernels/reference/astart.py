# SPDX-License-Identifier: Apache-2.0
"""Astart with BWE and with ERE, as in Yu 2009 section 4.6; choices as in kernels/modules/tcp_astart_*.c."""

from __future__ import annotations

import math

from kernels.reference.base import Ack, Reno

CLOCK_HZ = 1e6
"""Of the sender's clock: spans are whole ticks, and two ACKs of one tick share a sample."""


class Westwood:
    """The low-pass filter of Westwood's bandwidth estimate, in packets per second."""

    def __init__(self, tau_s: float) -> None:
        self.tau = tau_s
        self.estimate = 0.0
        self.last = 0.0

    def add(self, b: float, dt_s: float) -> None:
        a = (2 * self.tau - dt_s) / (2 * self.tau + dt_s)
        self.estimate = a * self.estimate + (1 - a) * (b + self.last) / 2
        self.last = b


class Span:
    """What is delivered between two ACKs that are at least ``length`` apart."""

    def __init__(self) -> None:
        self.begun: float | None = None
        self.before = 0
        self.length = 0.0

    def over(self, now_s: float, delivered: int) -> tuple[float, int] | None:
        if self.begun is None:
            self.begun, self.before = now_s, delivered
            return None
        dt, packets = now_s - self.begun, delivered - self.before
        if round(dt * CLOCK_HZ) < max(1, math.ceil(self.length * CLOCK_HZ - 1e-3)):
            return None
        self.begun, self.before = now_s, delivered
        return dt, packets


class Astart(Reno):
    def __init__(self, cwnd: float = 10.0, now_s: float = 0.0, *, tau_s: float = 1.0, ssthresh: float = 32.0) -> None:
        super().__init__(cwnd, now_s)
        self.ssthresh = ssthresh
        self.filter = Westwood(tau_s)
        self.span = Span()
        self.rtt = 0.0
        self.rtt_min = math.inf
        self.lost = False

    def forget_rtts(self) -> None:
        self.rtt_min = math.inf

    def on_sample(self, rtt_s: float | None, acked: int, now_s: float, *, recovering: bool = False) -> None:
        if rtt_s is not None:
            self.rtt = rtt_s
            self.rtt_min = min(self.rtt_min, rtt_s)

    def estimate(self, now_s: float, delivered: int) -> None:
        raise NotImplementedError

    def on_ack(self, ack: Ack) -> None:
        if not self.lost:
            self.estimate(ack.now_s, ack.delivered)
            if self.rtt_min < math.inf:
                self.ssthresh = max(self.ssthresh, float(math.floor(max(0.0, self.filter.estimate) * self.rtt_min)))
        super().on_ack(ack)

    def on_loss(self, now_s: float) -> None:
        super().on_loss(now_s)
        self.lost = True


class AstartBwe(Astart):
    def estimate(self, now_s: float, delivered: int) -> None:
        ended = self.span.over(now_s, delivered)
        if ended:
            self.filter.add(ended[1] / ended[0], ended[0])


class AstartEre(Astart):
    def __init__(self, cwnd: float = 10.0, now_s: float = 0.0, *, tau_s: float = 1.0, ssthresh: float = 32.0) -> None:
        super().__init__(cwnd, now_s, tau_s=tau_s, ssthresh=ssthresh)
        self.rate_span = Span()
        self.rate = 0.0

    def estimate(self, now_s: float, delivered: int) -> None:
        ended = self.rate_span.over(now_s, delivered)
        if ended:
            self.rate = ended[1] / ended[0]
        self.rate_span.length = self.rtt
        ended = self.span.over(now_s, delivered)
        if ended:
            self.filter.add(ended[1] / ended[0], ended[0])
        most = self.window / self.rtt_min
        self.span.length = self.rtt * max(0.0, (most - self.rate) / most)
