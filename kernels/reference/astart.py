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
    def __init__(
        self,
        cwnd: float = 10.0,
        now_s: float = 0.0,
        *,
        tau_s: float = 1.0,
        ssthresh: float = 32.0,
        each_ack: bool = False,
    ) -> None:
        """each_ack: whether ssthresh is raised with each ACK until the first loss, not once as the window reaches the first one"""
        super().__init__(cwnd, now_s)
        self.each_ack = each_ack
        self.ssthresh = ssthresh
        self.filter = Westwood(tau_s)
        self.span = Span()
        self.rtt = 0.0
        self.rtt_min = math.inf
        self.over = False

    def forget_rtts(self) -> None:
        self.rtt_min = math.inf

    def on_sample(self, rtt_s: float | None, acked: int, now_s: float, *, recovering: bool = False) -> None:
        if rtt_s is not None:
            self.rtt = rtt_s
            self.rtt_min = min(self.rtt_min, rtt_s)

    def estimate(self, now_s: float, delivered: int) -> None:
        raise NotImplementedError

    def on_ack(self, ack: Ack) -> None:
        if not self.over:
            self.estimate(ack.now_s, ack.delivered)
            if self.each_ack or not self.slow_start:
                self.over = not self.each_ack
                if self.rtt_min < math.inf:
                    self.ssthresh = max(self.ssthresh, float(math.floor(max(0.0, self.filter.estimate) * self.rtt_min)))
        super().on_ack(ack)

    def on_loss(self, now_s: float) -> None:
        super().on_loss(now_s)
        self.over = True


class AstartBwe(Astart):
    def estimate(self, now_s: float, delivered: int) -> None:
        ended = self.span.over(now_s, delivered)
        if ended:
            self.filter.add(ended[1] / ended[0], ended[0])


LEAST_SPAN_S = 1e-3


class Timer:
    """A timer that is set again whenever it expires, and what is delivered while it runs."""

    def __init__(self, now_s: float, delivered: int, length_s: float) -> None:
        self.begun, self.before, self.length = now_s, delivered, length_s

    def expired(self, now_s: float, delivered: int) -> list[int]:
        """What each period brought that ended before now, when the first ACK comes since delivered packets were there."""
        periods = []
        while round((now_s - self.begun - self.length) * CLOCK_HZ) > 0:
            periods.append(delivered - self.before)
            self.begun, self.before = self.begun + self.length, delivered
        return periods


class AstartEre(Astart):
    """Page 100: one timer of the latest RTT gives the rate, one of the latest T_k the samples; both restart at once."""

    timers: tuple[Timer, Timer] | None = None
    delivered = 0
    rate = 0.0

    def estimate(self, now_s: float, delivered: int) -> None:
        if self.timers is None:
            first = max(self.rtt, LEAST_SPAN_S)
            self.timers = Timer(now_s, delivered, first), Timer(now_s, delivered, first)
        of_rate, of_samples = self.timers
        if periods := of_rate.expired(now_s, self.delivered):
            self.rate = periods[-1] / of_rate.length
            of_rate.length = max(self.rtt, LEAST_SPAN_S)
        if periods := of_samples.expired(now_s, self.delivered):
            for packets in periods:
                self.filter.add(packets / of_samples.length, of_samples.length)
            most = self.window / self.rtt_min
            whole_us = math.ceil(self.rtt * max(0.0, (most - self.rate) / most) * CLOCK_HZ - 1e-3)
            of_samples.length = max(whole_us / CLOCK_HZ, LEAST_SPAN_S)
        self.delivered = delivered
