# SPDX-License-Identifier: Apache-2.0
"""Medley TCP: Cheng-Yuan Ho, dissertation, National Chiao Tung University, 2008 (equation numbers are Ho's).

Choices where the text is open are those of kernels/modules/tcp_medley.c, stated in its header.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from kernels.reference.base import Ack, Round, Specification


def backlog(W: float, D: float, d: float) -> float:
    """Delta, eq 2.1: packets that this flow has in the queues."""
    return W * (D - d) / D


def influence(W: float, I: float, D: float, d: float) -> float:  # noqa: E741 (the paper's symbol)
    """Gamma, eq 3.3: the backlog that growing by I packets explains."""
    A = W / D
    return W * I / (2 * A * d + I)


def whole(packets: float) -> float:
    """The nearest whole packet, as ns-2's Vegas counts its Delta; the reading that gives Ho's printed numbers."""
    return math.floor(packets + 0.5)


def increment(I: float, Delta: float, Gamma: float, Delta_last: float, R: bool) -> float:  # noqa: E741
    """The rule for I, section 3.2.3."""
    if (Delta <= Gamma and I < 0) or (Delta > Gamma and I == -1 and Delta < Delta_last):
        return 2.0
    if Delta <= Gamma:
        return I + 2
    return 0.5 if R else -1.0


class Medley(Specification):
    W_MIN = 2.0

    def __init__(
        self, cwnd: float = 2.0, now_s: float = 0.0, timeout_cwnd: float = 2.0, *, whole_packets: bool = True
    ) -> None:
        super().__init__(cwnd, now_s)
        self.timeout_cwnd = timeout_cwnd
        self.counted: Callable[[float], float] = whole if whole_packets else float
        self.d = math.inf
        self.I = 0.0
        self.Delta = 0.0
        self.Delta_last = 0.0
        self.Gamma = 0.0
        self.R = False
        self.judged = False
        self.round = Round()
        self.rtts: list[float] = []

    @property
    def window(self) -> int:
        """What TCP can send: whole packets."""
        return math.floor(self.cwnd)

    @property
    def D(self) -> float:
        return math.fsum(self.rtts) / len(self.rtts)

    fills_window = True

    def forget_rtts(self) -> None:
        self.d = math.inf
        self.rtts.clear()

    def on_start(self, delivered: int, in_flight: int) -> None:
        self._next_round(delivered, in_flight)

    def on_sample(self, rtt_s: float | None, acked: int, now_s: float, *, recovering: bool = False) -> None:
        if rtt_s is not None:
            self.d = min(self.d, rtt_s)
            self.rtts.append(rtt_s)

    def on_ack(self, ack: Ack) -> None:
        if not self.round.over(ack.delivered):
            return
        if ack.limited and self.rtts:
            self._judge()
            if self.judged:
                self.I = increment(self.I, self.Delta, self.Gamma, self.Delta_last, self.R)
            self.judged = True
            self.cwnd = max(self.W_MIN, min(self.cwnd + self.I, 2 * self.window))
        self._next_round(ack.delivered, ack.in_flight)

    def _judge(self) -> None:
        W, D = self.window, self.D
        self.Delta_last, self.Delta = self.Delta, self.counted(backlog(W, D, self.d))
        if self.I > 0:
            self.Gamma = self.counted(influence(W, self.I, D, self.d))
        elif self.Gamma == 0:
            self.Gamma = self.counted(influence(W, 2.0, D, self.d))

    def _next_round(self, delivered: int, in_flight: int) -> None:
        self.rtts.clear()
        self.round.begin(delivered, in_flight)

    def on_loss(self, now_s: float) -> None:
        W = self.window
        if self.rtts:
            self.Delta = self.counted(backlog(W, self.D, self.d))
        self.R = self.Delta > self.Gamma
        self.I = 0.0
        self.cwnd = float(W)
        self.ssthresh = max(2.0, W - W // 4)

    def on_retransmission_lost(self) -> None:
        self.ssthresh = max(2.0, self.window // 2)

    def on_recovered(self, delivered: int, in_flight: int) -> None:
        super().on_recovered(delivered, in_flight)
        self._next_round(delivered, in_flight)

    def on_undo(self) -> None:
        """The half packet that was owed to the window is forgotten with the loss."""
        super().on_undo()
        self.cwnd = float(self.window)

    def on_undone_recovery(self, delivered: int, in_flight: int) -> None:
        self._next_round(delivered, in_flight)

    keeps_flight_after_timeout = False

    def on_timeout(self, delivered: int, in_flight: int) -> None:
        self.cwnd = self.timeout_cwnd
        self.on_restart(delivered, in_flight)

    def on_smaller_packets(self, delivered: int, in_flight: int) -> None:
        super().on_smaller_packets(delivered, in_flight)
        self._next_round(delivered, in_flight)

    def on_restart(self, delivered: int, in_flight: int) -> None:
        self.I = 0.0
        self.Delta = 0.0
        self.judged = False
        self._next_round(delivered, in_flight)


def t1_polynomial(t: float, bdp: float) -> float:
    """Left side of eq 4.4 with bdp = mu d; positive from t_1 on.

    The constant is printed as 28; carrying out the derivation above it gives 40.  Neither moves a root of interest.
    """
    return 2 * t**4 - 8 * t**3 + (23 - bdp) * t**2 - (44 - bdp) * t + (28 - 2 * bdp)


def tj_polynomial(a: float, b: float, bdp: float) -> float:
    """Left side of eq 4.7 with a = t_j - t_(j-1), b = W at t_(j-1)."""
    return (
        2 * a**5
        - 26 * a**4
        + (125 + 4 * b - bdp) * a**3
        - (271 + 32 * b - 5 * bdp) * a**2
        + (2 * b**2 + 77 * b + 254 + (4 - b) * bdp) * a
        - (6 * b**2 + 51 * b + 78 + (20 - 2 * b) * bdp)
    )


def model(bdp: float, steps: int) -> list[tuple[int, int]]:
    """(t_j, W at t_j) of chapter 4 for a path of mu d = bdp packets."""
    t = next(t for t in range(3, 10**6) if t1_polynomial(t, bdp) > 0)
    result = [(t, t * t - t + 2)]
    while len(result) < steps:
        t, W = result[-1]
        a = next(a for a in range(4, 10**6) if tj_polynomial(a, W, bdp) > 0)
        result.append((t + a, W + a * a - 3 * a))
    return result
