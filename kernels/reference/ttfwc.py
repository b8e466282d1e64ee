# SPDX-License-Identifier: Apache-2.0
"""TTFWC and TFWC (tp = 0): Midori Kato, bachelor's thesis, Keio University, 2012.

The thesis leaves the single weights open, but not their sum: "the accurate ALI is increased when the sender receives
5.3 ACKs" with 16 intervals and 2.8 with 8 (section 4.1), and calls the mean an EWMA.  The cheap update of the ALI and the
thresholds of eq 3.1 are those of its listing.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence

from kernels.reference.base import Ack, Reno

LI_MAX = 2**31 - 1
SUM_OF_WEIGHTS = {16: 5.3, 8: 2.8}


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


@functools.cache
def weights(n: int, *, rfc5348: bool = False) -> tuple[float, ...]:
    """1 for the newest of n intervals; an EWMA's with the thesis' sum, or those of RFC 5348 section 5.4."""
    if rfc5348:
        return tuple(1.0 if i < n / 2 else (n - i) / (n / 2 + 1) for i in range(n))
    low, high = 0.0, 1.0
    while high - low > 1e-12:
        factor = (low + high) / 2
        low, high = (factor, high) if sum(factor**i for i in range(n)) < SUM_OF_WEIGHTS[n] else (low, factor)
    return tuple(low**i for i in range(n))


def average(intervals: Sequence[float], weight: Sequence[float]) -> float:
    pairs = list(zip(weight, intervals, strict=False))
    return math.fsum(w * li for w, li in pairs) / math.fsum(w for w, _ in pairs)


@dataclasses.dataclass(frozen=True)
class Tuning:
    """Reno's window beside this one since the last loss, and what became of it."""

    reno_cwnd: int = 0
    reno_from: int = 0
    extra: int = 0
    tunable: bool = False
    added: bool = False


class Ttfwc(Reno):
    def __init__(
        self,
        cwnd: float = 10.0,
        now_s: float = 0.0,
        *,
        tp: float = 0.0,
        exact: bool = False,
        rfc5348: bool = False,
        rises: bool = False,
        ratio: int | None = None,
    ) -> None:
        """rises: eq 3.1 as it stands, by which a window that a loss has not lowered passes; else the listing's condition

        ratio: least percent of the old window for an addition; None: the listing's
        """
        super().__init__(cwnd, now_s)
        self.tp = tp
        self.responsive = tp >= 0.5
        self.n = 8 if self.responsive else 16
        self.weights = weights(self.n, rfc5348=rfc5348)
        self.step = None if exact else 3 if self.responsive else 6
        self.ratio = ratio if ratio is not None else 72 if self.responsive else 81
        self.rises = rises
        self.history: list[float] = []
        self.begun = 0
        self.delivered = 0
        self.reno_mode = False
        self.tuning = Tuning()
        self.ali = 0.0
        self.flat = 0
        self.before: tuple[list[float], bool, Tuning] = ([], False, Tuning())

    def on_start(self, delivered: int, in_flight: int) -> None:
        self.begun = self.delivered = delivered

    def on_delivered(self, delivered: int) -> None:
        self.delivered = delivered

    @property
    def open(self) -> int:
        """The interval that no loss has ended yet."""
        return min(self.delivered - self.begun, LI_MAX)

    def _weigh(self) -> None:
        """The average, and how long the open interval may become before it raises it."""
        self.ali = average(self.history, self.weights) if self.history else 0.0
        older = self.history[: self.n - 1]
        total = math.fsum(self.weights[: len(older) + 1])
        weighted = math.fsum(w * li for w, li in zip(self.weights[1:], older, strict=False))
        self.flat = max(0, math.floor((self.ali * total - weighted) / self.weights[0] + 1e-9))

    def _follow_reno(self, cwnd: int) -> None:
        """Reno's window: this one's in the middle of the flat period, then one more per window of packets."""
        if self.tuning.added or self.open < self.flat // 2:
            return
        reno, since = self.tuning.reno_cwnd, self.tuning.reno_from
        if not reno:
            reno, since = cwnd, self.open
        while self.open - since >= reno:
            since += reno
            reno += 1
        self.tuning = dataclasses.replace(self.tuning, reno_cwnd=reno, reno_from=since)

    def on_ack(self, ack: Ack) -> None:
        self.delivered = ack.delivered
        if not ack.limited:
            self.begun = min(self.begun + ack.acked, self.delivered)
            return
        if self.reno_mode or not self.history or self.slow_start:
            super().on_ack(ack)
            return
        cwnd = self.window
        self._follow_reno(cwnd)
        if self.open <= self.flat:
            return
        if not self.tuning.added:
            delta = max(0, self.tuning.reno_cwnd - cwnd) if self.tuning.tunable else 0
            extra = math.floor((self.tp if self.responsive else self.tp**2) * delta + 1e-9)
            self.tuning = dataclasses.replace(self.tuning, added=True, extra=extra)
        if self.step is None:
            ali = max(self.ali, average([self.open, *self.history], self.weights))
        else:
            ali = self.ali + (self.open - self.flat) // self.step
        wanted = math.floor(equation(1 / ali)) + self.tuning.extra
        if wanted > cwnd:
            self.cwnd = float(min(wanted, cwnd + ack.acked))

    def on_loss(self, now_s: float) -> None:
        cwnd = self.window
        self.cwnd = float(cwnd)
        self.before = (self.history, self.reno_mode, self.tuning)
        newest = max(1, self.open) if self.history else inverse(max(2, cwnd // 2))
        self.history = [newest, *self.history][:16]
        self.begun = self.delivered
        self._weigh()
        window = math.floor(equation(1 / max(1.0, self.ali)))
        self.reno_mode = window < 2
        self.ssthresh = float(max(2, window))
        base = max(cwnd - self.tuning.extra, 1)
        tunable = (self.rises or self.ssthresh < base) and self.ssthresh * 100 // base > self.ratio
        self.tuning = Tuning(tunable=tunable)

    def on_undo(self) -> None:
        super().on_undo()
        if len(self.history) > 1:  # the first one was made up
            self.begun -= int(self.history[0])
        self.history, self.reno_mode, self.tuning = self.before
        self._weigh()
