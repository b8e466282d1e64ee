# SPDX-License-Identifier: Apache-2.0
"""TCP FTAT: Mohammed Afifi, master's thesis, Cleveland State University, 2014, section 3.5.2.

Choices where the text is open are those of kernels/modules/tcp_ftat.c.
"""

from __future__ import annotations

import enum
import math

from kernels.reference.base import Specification


def throughput(bandwidth: float, p: float, rtt_s: float) -> float:
    """The thesis's steady-state theorem (chapter 6), packets per second."""
    return bandwidth / 2 + math.sqrt(bandwidth**2 / 4 + (1 - p) / (rtt_s**2 * p))


class Phase(enum.Enum):
    START = 1
    MEASURE = 2
    INCREASE = 3


class Ftat(Specification):
    def __init__(self, cwnd: float = 45.0, now_s: float = 0.0) -> None:
        super().__init__(cwnd, now_s)
        self.first = cwnd  # 64 KB in packets
        self.phase = Phase.START
        self.threshold = 0.0  # cwndthreshold
        self.srtt: float | None = None
        self.begun_s = self.period_s = 0.0
        self.before = 0
        self.app_limited = False
        self.delivered = self.duplicates = 0

    @property
    def window(self) -> int:
        return math.floor(self.cwnd + 1e-9)

    def on_delivered(self, delivered: int) -> None:
        self.delivered = delivered

    def on_duplicates(self, duplicates: int) -> None:
        self.delivered -= duplicates

    def on_sample(self, rtt_s: float | None, acked: int, now_s: float, *, recovering: bool = False) -> None:
        if rtt_s is not None:
            self.srtt = rtt_s if self.srtt is None else self.srtt + (rtt_s - self.srtt) / 8

    def on_control(self, acked: int, now_s: float, *, loss: bool, limited: bool, idle: bool) -> None:
        """Any ACK: packets it delivered, was a loss found, was the window in use, does the application send nothing?"""
        self.app_limited |= not limited and idle
        ended = self.phase is Phase.MEASURE and now_s - self.begun_s >= self.period_s - 1e-9
        if ended:
            late = now_s - self.begun_s > self.period_s + 1e-9
            self._end(acked if late else 0)
        if self.phase is Phase.START:
            if acked and self.srtt is not None:
                self._begin(now_s, self.delivered - acked)
        elif self.phase is Phase.INCREASE:
            if loss:
                self.threshold = self.window
                self._begin(now_s, self.delivered)
            elif limited and not ended:
                self._increase(acked)

    def _begin(self, now_s: float, before: int) -> None:
        assert self.srtt is not None
        self.cwnd = float(self.window)
        self.phase, self.begun_s, self.before = Phase.MEASURE, now_s, before
        self.period_s = math.floor(self.srtt * 1e6 + 1e-6) / 1e6  # the clock's resolution
        self.app_limited = False

    def _end(self, late: int) -> None:
        self.phase = Phase.INCREASE
        if not self.app_limited:
            self.cwnd = float(max(1, self.delivered - self.before - late))

    def _increase(self, acked: int) -> None:
        for _ in range(acked):
            self.cwnd += 1.0 if self.window < max(self.threshold, self.first) else 1 / self.window

    def on_timeout(self, delivered: int, in_flight: int) -> None:
        if self.phase is Phase.MEASURE:
            self._end_timeout()
        else:
            self.cwnd = 1.0
        self.phase = Phase.INCREASE

    def _end_timeout(self) -> None:
        self.cwnd = float(max(1, self.delivered - self.before))

    def on_loss(self, now_s: float) -> None:
        self.ssthresh = float(max(2, self.window))

    def on_congestion_notified(self, now_s: float) -> None:
        """Section 3.5.2 knows losses only; a mark stands for one (RFC 3168)."""
        if self.phase is Phase.INCREASE:
            self.threshold = self.window
            self._begin(now_s, self.delivered)

    def on_first_timeout(self) -> None:
        if self.phase is not Phase.MEASURE:
            self.threshold = self.window

    def on_recovered(self, delivered: int, in_flight: int) -> None:
        """The kernel's recovery means nothing to FTAT."""
