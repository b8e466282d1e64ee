# SPDX-License-Identifier: Apache-2.0
"""Gentle HighSpeed TCP: Koichi Tokuda, master's thesis, Osaka University, 2003, section 5.1.

The test's points, n and level are open in the thesis; they are those of kernels/modules/tcp_ghighspeed.c.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from kernels.reference.base import Ack, Reno, Round
from kernels.reference.highspeed import THESIS, Response

POINTS_PER_WINDOW = 8
POINT_MOST = 65535


def t_critical(level: float, df: int) -> float:
    """One-sided quantile of Student's t (expansion in 1/df, Abramowitz and Stegun 26.7.5, two terms)."""
    z = statistics.NormalDist().inv_cdf(1 - level)
    return z + (z**3 + z) / (4 * df) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * df**2)


def trend(points: Sequence[tuple[float, float]], level: float) -> int:
    """1 for a significant positive correlation of the pairs (t, d), -1 for a negative one, else 0."""
    n = len(points)
    t_mean = math.fsum(t for t, _ in points) / n
    d_mean = math.fsum(d for _, d in points) / n
    x = math.fsum((t - t_mean) ** 2 for t, _ in points)
    y = math.fsum((d - d_mean) ** 2 for _, d in points)
    z = math.fsum((t - t_mean) * (d - d_mean) for t, d in points)
    if x <= 0 or y <= 0:
        return 0
    r = max(-1.0, min(1.0, z / math.sqrt(x * y)))
    if abs(r) < 1 and abs(r) * math.sqrt((n - 2) / (1 - r * r)) < t_critical(level, n - 2):
        return 0
    return 1 if r > 0 else -1


class GentleHighSpeed(Reno):
    def __init__(
        self,
        cwnd: float = 10.0,
        now_s: float = 0.0,
        *,
        response: Response = THESIS,
        points: int = 32,
        level: float = 0.01,
        max_ssthresh: int = 0,
        gentle: bool = True,
        halve_in_reno_mode: bool = False,
    ) -> None:
        super().__init__(cwnd, now_s)
        self.response = response
        self.n = points
        self.level = level
        self.max_ssthresh = max_ssthresh
        self.gentle = gentle
        self.halve_in_reno_mode = halve_in_reno_mode
        self.reno_mode = False
        self.lost = self.lost_before = False
        self.w_lost = 0
        self.ssthresh_after: float | None = None
        self.round = Round()
        self._begin_test()

    def _begin_test(self) -> None:
        self.points: list[tuple[float, float]] = []
        self.samples: list[tuple[float, float]] = []
        self.first_sent_s = 0.0
        self.point_size = 1

    def on_start(self, delivered: int, in_flight: int) -> None:
        self.round.begin(delivered, in_flight)

    def on_sample(self, rtt_s: float | None, acked: int, now_s: float, *, recovering: bool = False) -> None:
        if not self.gentle or rtt_s is None or recovering or self.slow_start:
            return
        if not self.samples:
            self.point_size = max(1, min(self.whole_window // POINTS_PER_WINDOW, POINT_MOST))
        # a packet that was overtaken counts as sent with the first one of the test
        sent_s = max(now_s - rtt_s, self.first_sent_s) if self.samples or self.points else now_s - rtt_s
        if not self.samples and not self.points:
            self.first_sent_s = sent_s
        self.samples.append((sent_s, rtt_s))
        if len(self.samples) < self.point_size:
            return
        self.points.append((statistics.fmean(t for t, _ in self.samples), statistics.fmean(d for _, d in self.samples)))
        self.samples = []
        if len(self.points) < self.n:
            return
        direction = trend(self.points, self.level)
        if direction:
            self.reno_mode = direction > 0
        self._begin_test()

    def on_ack(self, ack: Ack) -> None:
        if self.round.over(ack.delivered):
            if self.gentle and self.slow_start and ack.unsent:
                self.ssthresh = float(self.window)
            self.round.begin(ack.delivered, ack.in_flight)
        if not ack.limited:
            return
        left = ack.acked
        if self.slow_start:
            if self.max_ssthresh and self.window > self.max_ssthresh:
                self.grow_avoidance(left, self.window / (2 * self.window // self.max_ssthresh))  # RFC 3742
                return
            left = self.grow_slow_start(left)
        for _ in range(left):
            self.grow_avoidance(1, 1.0 if self.reno_mode else self.response.a(self.window))

    def on_loss(self, now_s: float) -> None:
        w = self.w_lost = self.window
        self.cwnd = float(w)
        self.ssthresh_after = None
        if self.gentle and not self.lost and self.slow_start:
            self.ssthresh_after = max(2.0, w // 2)
            self.ssthresh = max(2.0, w // 4)
        else:
            b = 0.5 if self.reno_mode and self.halve_in_reno_mode else self.response.b(w)
            self.ssthresh = max(2.0, math.ceil(w * (1 - b) - 1e-3))
        self.lost_before, self.lost = self.lost, True
        self._begin_test()

    def on_recovered(self, delivered: int, in_flight: int) -> None:
        super().on_recovered(delivered, in_flight)
        if self.ssthresh_after is not None:
            self.ssthresh = self.ssthresh_after
        self.ssthresh_after = None
        self.round.begin(delivered, in_flight)

    def on_timeout(self, delivered: int, in_flight: int) -> None:
        self.ssthresh = max(2.0, self.w_lost // 2)
        self.ssthresh_after = None
        super().on_timeout(delivered, in_flight)
        self._begin_test()

    def on_undo(self) -> None:
        super().on_undo()
        self.lost = self.lost_before
        self.ssthresh_after = None
