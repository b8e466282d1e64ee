# SPDX-License-Identifier: Apache-2.0
"""TTFWC and TFWC (tp = 0): Junji Kato, master's thesis, Keio University, 2012.

Open points (weights, threshold of eq 3.1, cheap ALI update) are those of kernels/modules/tcp_ttfwc.c.
"""

from __future__ import annotations

import math

from kernels.reference.base import Ack, Reno

LI_MAX = 2**24 - 1


def equation(p: float) -> float:
    """Eq 2.1."""
    return 1 / (math.sqrt(2 * p / 3) + 12 * math.sqrt(3 * p / 8) * p * (1 + 32 * p**2))


def inverse(cwnd: float) -> int:
    """The smallest whole interval whose window is at least cwnd."""
    low, high = 1, LI_MAX
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if equation(1 / middle) < cwnd else (low, middle)
    return low


def weights(n: int) -> list[float]:
    """RFC 5348 section 5.4 for n intervals."""
    return [1.0 if i < n / 2 else (n - i) / (n / 2 + 1) for i in range(n)]


def average(intervals: list[float], n: int) -> float:
    pairs = list(zip(weights(n), intervals, strict=False))
    return math.fsum(w * li for w, li in pairs) / math.fsum(w for w, _ in pairs)


class Ttfwc(Reno):
    def __init__(self, cwnd: float = 10.0, now_s: float = 0.0, *, tp: float = 0.0, exact: bool = False) -> None:
        super().__init__(cwnd, now_s)
        self.tp = tp
        self.responsive = tp >= 0.5
        self.n = 8 if self.responsive else 16
        self.step = None if exact else 3 if self.responsive else 6
        self.ratio = 0.72 if self.responsive else 0.81
        self.history: list[float] = []
        self.begun = 0
        self.delivered = 0
        self.reno_mode = False
        self.reno_cwnd = 0
        self.reno_from = 0
        self.extra = 0
        self.tunable = False
        self.added = False
        self.ali = 0.0
        self.flat = 0

    def on_start(self, delivered: int, in_flight: int) -> None:
        self.begun = self.delivered = delivered

    def on_delivered(self, delivered: int) -> None:
        self.delivered = delivered

    def _flat(self) -> int:
        """How long the open interval may be before it raises the average."""
        w = weights(self.n)
        older = self.history[: self.n - 1]
        total = math.fsum(w[: len(older) + 1])
        return max(0, math.floor((self.ali * total - math.fsum(map(lambda a, b: a * b, w[1:], older))) / w[0] + 1e-9))

    def on_ack(self, ack: Ack) -> None:
        self.delivered = ack.delivered
        if not ack.limited:
            return
        if self.reno_mode or not self.history or self.slow_start:
            super().on_ack(ack)
            return
        cwnd, x = self.window, min(ack.delivered - self.begun, LI_MAX)
        if not self.added and x >= self.flat // 2:
            if not self.reno_cwnd:
                self.reno_cwnd, self.reno_from = cwnd, x
            while x - self.reno_from >= self.reno_cwnd:
                self.reno_from += self.reno_cwnd
                self.reno_cwnd += 1
        if x <= self.flat:
            return
        if not self.added:
            self.added = True
            if self.tunable:
                delta = max(0, self.reno_cwnd - cwnd)
                self.extra = math.floor((self.tp if self.responsive else self.tp**2) * delta + 1e-9)
        if self.step is None:
            ali = max(self.ali, average([x, *self.history], self.n))
        else:
            ali = self.ali + (x - self.flat) // self.step
        wanted = math.floor(equation(1 / ali)) + self.extra
        if wanted > cwnd:
            self.cwnd = float(min(wanted, cwnd + ack.acked))

    def on_loss(self, now_s: float) -> None:
        cwnd = self.window
        self.cwnd = float(cwnd)
        if self.history:
            self.history.insert(0, max(1, min(self.delivered - self.begun, LI_MAX)))
        else:
            self.history.append(inverse(max(2, cwnd // 2)))
        del self.history[16:]
        self.begun = self.delivered
        self.ali = average(self.history, self.n)
        self.flat = self._flat()
        window = math.floor(equation(1 / max(1.0, self.ali)))
        self.reno_mode = window < 2
        self.ssthresh = float(max(2, window))
        base = max(cwnd - self.extra, 1)
        self.tunable = self.ssthresh < base and self.ssthresh * 100 // base > round(self.ratio * 100)
        self.extra = self.reno_cwnd = 0
        self.added = False
