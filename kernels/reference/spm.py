# SPDX-License-Identifier: Apache-2.0
"""SPM, slow start with packet pair measurements: Yu 2009, section 4.5; choices as in kernels/modules/tcp_spm.c."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kernels.reference.base import Ack, Reno
from kernels.reference.inverted import Answer, Pair, Pairs

INPUT_GAPS = (1.0, 1.5, 2.0, 4.0)
"""Of the pairs in turn, in units of y0."""
LEAST_SAMPLES = 12
NO_ESTIMATE, LINE, BOUNDED = range(3)
"""Where no gap qualifies, which the thesis leaves open: the module's parameter `unqualified`."""


def gamma(samples: Sequence[tuple[float, float]], beta: float = 1.05, unqualified: int = NO_ESTIMATE) -> float | None:
    """The gap at which the path's spare capacity would be used, from (input gap, output gap) of pairs.

    None where the slope is not below one: the path has nothing to spare. Where no gap qualifies there is none either (NO_ESTIMATE), or
    gamma is where the line through all samples meets y = x (LINE, as if gamma0 were infinite), at most the widest gap (BOUNDED).
    """
    outputs: dict[float, list[float]] = {}
    for x, y in samples:
        outputs.setdefault(x, []).append(y)
    tested = sorted(outputs)
    qualified = next((x for x in tested if math.fsum(outputs[x]) / len(outputs[x]) <= beta * x), None)
    if qualified is None and unqualified == NO_ESTIMATE:
        return None
    gamma_0 = tested[-1] if qualified is None else qualified
    if gamma_0 == tested[0]:
        return gamma_0
    points = [(x, y) for x, y in samples if x <= gamma_0]
    mean_x = math.fsum(x for x, _ in points) / len(points)
    mean_y = math.fsum(y for _, y in points) / len(points)
    a = math.fsum((x - mean_x) * (y - mean_y) for x, y in points) / math.fsum((x - mean_x) ** 2 for x, _ in points)
    if a >= 1:
        return None
    crossing = (mean_y - a * mean_x) / (1 - a)
    if crossing <= 0:
        return gamma_0
    return crossing if qualified is None and unqualified == LINE else min(gamma_0, crossing)


class Spm(Reno):
    grows_on_duplicates = True

    def __init__(
        self,
        cwnd: float = 2.0,
        now_s: float = 0.0,
        *,
        ssthresh: float = 32.0,
        end_cwnd: float = 32.0,
        new: bool = True,
        unqualified: int = NO_ESTIMATE,
    ) -> None:
        """new: whether the connection has sent no data yet; else it is Reno's. unqualified: as for gamma()"""
        super().__init__(cwnd, now_s)
        self.ssthresh, self.end_cwnd = ssthresh if new else math.inf, end_cwnd
        self.unqualified = unqualified
        self.pairs = Pairs()
        self.rtt_min = math.inf
        self.y0: float | None = None
        self.turn = 0
        self.samples: list[tuple[float, float]] = []  # in units of y0
        self.measuring = self.sending = new
        self.stopped_ns: float | None = None
        self.grown = self.one = False

    def on_pair(self, seq: int, gap_s: float) -> None:
        """The second packet of a pair leaves, a gap after the first, which left in slow start."""
        if self.stopped_ns is not None and self.clock_ns - gap_s * 1e9 > self.stopped_ns:
            self.wrong.append("pair after measuring")
        if self.y0 is None:
            if gap_s or self.pairs.under_way:
                self.wrong.append("first pair not alone and back to back")
        else:
            if abs(gap_s - self.y0 * INPUT_GAPS[self.turn]) > 1.1e-6:
                self.wrong.append(f"input gap {gap_s} instead of {self.y0 * INPUT_GAPS[self.turn]}")
            self.turn = (self.turn + 1) % len(INPUT_GAPS)
        self.pairs.sent(seq, gap_s)

    def forget_rtts(self) -> None:
        self.rtt_min = math.inf

    def on_sample(self, rtt_s: float | None, acked: int, now_s: float, *, recovering: bool = False) -> None:
        if rtt_s is not None:
            self.rtt_min = min(self.rtt_min, rtt_s)

    def on_acknowledged(self, una: int, acked: int, now_s: float, *, limited: bool) -> None:
        self.grown = self.one = False
        if self.measuring:
            self._measured(una, acked, now_s, limited=limited)
            self._stop_outside_of_slow_start()

    def _stop_outside_of_slow_start(self) -> None:
        if self.stopped_ns is None and not (self.sending and self.slow_start):
            self.stopped_ns = self.clock_ns

    def _measured(self, una: int, acked: int, now_s: float, *, limited: bool) -> None:
        answer, pair = self.pairs.acknowledged(una, acked, now_s)
        if answer is Answer.FIRST and self.slow_start and limited:
            self.grow_slow_start(1)
            self.grown = True
        elif answer is Answer.SECOND and pair is not None:
            self.one = pair.answered_s is not None
            self._measure(pair, now_s)
        elif answer is Answer.DUPLICATE:
            self.measuring = self.sending = False
            return
        self.sending = self.sending and self.window < self.end_cwnd
        if not self.sending and not self.pairs.under_way:
            self.measuring = False
            self._estimate()

    def _measure(self, pair: Pair, now_s: float) -> None:
        if pair.answered_s is None or now_s <= pair.answered_s:
            return
        if self.y0 is None:
            self.y0 = now_s - pair.answered_s
        else:
            nominal = min(INPUT_GAPS, key=lambda x: abs(x * self.y0 - pair.gap_s) if self.y0 else 0)
            self.samples.append((nominal, min(16.0, (now_s - pair.answered_s) / self.y0)))

    def _estimate(self) -> None:
        if len(self.samples) < LEAST_SAMPLES or self.y0 is None:
            return
        gap = gamma(self.samples, unqualified=self.unqualified)
        if gap is not None:
            self.ssthresh = float(max(2, math.floor(self.rtt_min / (gap * self.y0))))

    def on_ack(self, ack: Ack) -> None:
        if self.grown or not ack.limited:
            return
        if self.slow_start:  # limited byte counting
            left = self.grow_slow_start(min(ack.acked, 1 if self.one else 2))
            if left:
                self.grow_avoidance(left)
        else:
            self.grow_avoidance(ack.acked)
        self._stop_outside_of_slow_start()

    def on_loss(self, now_s: float) -> None:
        super().on_loss(now_s)
        self.measuring = self.sending = False
        self._stop_outside_of_slow_start()
