# SPDX-License-Identifier: Apache-2.0
"""Impairments of a link's direction: jitter, loss models, schedules, queue management.

Pure data with the formulas that measurements are held against. Runs in a guest too: standard library only.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

JITTER_REACH = {"uniform": (-1.0, 1.0), "normal": (-4.0, 4.0), "pareto": (-0.67, 4.0), "paretonormal": (-1.51, 4.0)}
"""Smallest and largest deviation in units of the jitter, as far as netem's tables reach."""

MOST_LAGS = 20_000
"""Packets after which a loss model's memory counts as gone."""
CHANCE_BYTES = 1504
"""What one delivery opportunity of a Mahimahi trace can carry."""


@dataclass(frozen=True)
class Jitter:
    """Random part of the delay, drawn by netem for each packet.

    spread_ns: standard deviation; half of the width of `uniform`
    keeps_order: a packet waits for those before it; else they overtake each other
    """

    spread_ns: int
    distribution: str = "normal"
    keeps_order: bool = True

    @property
    def reach_ns(self) -> tuple[int, int]:
        """Smallest (negative) and largest deviation, ns."""
        low, high = JITTER_REACH[self.distribution]
        return math.floor(low * self.spread_ns), math.ceil(high * self.spread_ns)


@dataclass(frozen=True)
class GilbertElliott:
    """Two states; p: good → bad, r: bad → good, per packet; h and k: share delivered in the bad and the good state.

    Source: Hasslinger and Hohlfeld 2008; netem's `gemodel`.
    """

    p: float
    r: float
    h: float = 0.0
    k: float = 1.0

    @property
    def mean(self) -> float:
        """Stationary loss."""
        bad = self.p / (self.p + self.r)
        return bad * (1 - self.h) + (1 - bad) * (1 - self.k)

    @property
    def clumping(self) -> float:
        """Variance of the number of losses over that of independent ones, in a long stretch."""
        return clumping([[1 - self.p, self.p], [self.r, 1 - self.r]], [1 - self.k, 1 - self.h])


@dataclass(frozen=True)
class FourState:
    """1 delivered in a gap, 2 delivered in a burst, 3 lost in a burst, 4 lost alone; p<from><to> per packet.

    Source: Salsano et al. 2009; netem's `loss state`, which goes from 4 back to 1 always.
    """

    p13: float
    p31: float = 1.0
    p32: float = 0.0
    p23: float = 1.0
    p14: float = 0.0

    @property
    def shares(self) -> tuple[float, float, float, float]:
        """Stationary probabilities of the states 1 to 4."""
        if self.p13 == 0:
            one = 1 / (1 + self.p14)
            return one, 0.0, 0.0, one * self.p14
        three = self.p13 / self.p31  # balance of 1 and {2, 3}: π1 p13 = π3 p31
        two = three * self.p32 / self.p23 if self.p32 else 0.0
        total = 1 + two + three + self.p14
        return 1 / total, two / total, three / total, self.p14 / total

    @property
    def mean(self) -> float:
        """Stationary loss."""
        _, _, three, four = self.shares
        return three + four

    @property
    def clumping(self) -> float:
        """Variance of the number of losses over that of independent ones, in a long stretch."""
        rows: list[list[float]] = [
            [1 - self.p13 - self.p14, 0, self.p13, self.p14],
            [0, 1 - self.p23, self.p23, 0],
            [self.p31, self.p32, 1 - self.p31 - self.p32, 0],
            [1, 0, 0, 0],
        ]
        return clumping(rows, [0, 0, 1, 1])


def clumping(transitions: Sequence[Sequence[float]], lost: Sequence[float]) -> float:
    """1 + 2 Σ autocorrelation of a Markov chain's losses: how much wider than binomial their number is.

    transitions: rows of probabilities per packet; lost: share lost in each state
    """
    states = range(len(lost))
    shares = [1 / len(lost)] * len(lost)
    for _ in range(MOST_LAGS):
        following = [sum(shares[i] * transitions[i][j] for i in states) for j in states]
        if max(abs(a - b) for a, b in zip(shares, following, strict=True)) < 1e-13:
            break
        shares = following
    mean = sum(share * loss for share, loss in zip(shares, lost, strict=True))
    if not 0 < mean < 1:
        return 1.0
    expected, total = list(lost), 0.0
    for _ in range(MOST_LAGS):
        expected = [sum(transitions[i][j] * expected[j] for j in states) for i in states]
        covariance = sum(shares[i] * lost[i] * expected[i] for i in states) - mean * mean
        total += covariance
        if abs(covariance) < 1e-9 * mean:
            break
    return max(1.0, 1 + 2 * total / (mean * (1 - mean)))


@dataclass(frozen=True)
class Steps:
    """A value that changes at given times: values[i] from at_ns[i] on, counted from the run's start; at_ns[0] is 0.

    repeat_ns: after that time it starts over; None: the last value stays. Before the run the first value holds.
    """

    at_ns: tuple[int, ...]
    values: tuple[float, ...]
    repeat_ns: int | None = None

    def at(self, t_ns: int) -> float:
        """The value at a time of the run."""
        if self.repeat_ns is not None and t_ns > 0:
            t_ns %= self.repeat_ns
        return self.values[max(0, bisect.bisect_right(self.at_ns, t_ns) - 1)]

    def pieces(self, start_ns: int, end_ns: int) -> list[tuple[int, int, float]]:
        """(from, to, value) over a stretch of the run."""
        parts, here = [], start_ns
        while here < end_ns:
            until = min(end_ns, self._next(here))
            parts.append((here, until, self.at(here)))
            here = until
        return parts

    def mean(self, start_ns: int, end_ns: int) -> float:
        """Mean over a stretch of the run."""
        if end_ns <= start_ns:
            return self.at(start_ns)
        return sum((to - since) * value for since, to, value in self.pieces(start_ns, end_ns)) / (end_ns - start_ns)

    def _next(self, t_ns: int) -> int:
        base = 0 if self.repeat_ns is None else t_ns // self.repeat_ns * self.repeat_ns
        index = bisect.bisect_right(self.at_ns, t_ns - base)
        if index < len(self.at_ns):
            return base + self.at_ns[index]
        return 1 << 62 if self.repeat_ns is None else base + self.repeat_ns


@dataclass(frozen=True)
class RateTrace:
    """Delivery opportunities as in Mahimahi: at chance_ms[i] counts[i] times CHANCE_BYTES can leave.

    chance_ms ascends within [0, repeat_ms); the trace goes round. `name` is what the file calls it.
    """

    name: str
    chance_ms: tuple[int, ...]
    counts: tuple[int, ...]
    repeat_ms: int

    @property
    def mean_bps(self) -> int:
        return round(sum(self.counts) * CHANCE_BYTES * 8000 / self.repeat_ms)

    @property
    def peak_bps(self) -> int:
        """Highest rate of 100 ms, bit/s."""
        best = total = first = 0
        for last, ms in enumerate(self.chance_ms):
            total += self.counts[last]
            while self.chance_ms[first] <= ms - 100:
                total -= self.counts[first]
                first += 1
            best = max(best, total)
        return max(self.mean_bps, best * CHANCE_BYTES * 80)

    @property
    def longest_gap_ms(self) -> int:
        ends = [*self.chance_ms, self.chance_ms[0] + self.repeat_ms]
        return max(later - earlier for earlier, later in itertools.pairwise(ends))

    def bytes_between(self, start_ns: int, end_ns: int) -> int:
        """What can be delivered after start_ns and up to end_ns of the run."""
        return self._bytes_up_to(end_ns) - self._bytes_up_to(start_ns)

    def _bytes_up_to(self, t_ns: int) -> int:
        rounds, rest = divmod(t_ns // 10**6, self.repeat_ms)
        sums = self._sums
        return (rounds * sums[-1] + sums[bisect.bisect_right(self.chance_ms, rest)]) * CHANCE_BYTES

    @functools.cached_property
    def _sums(self) -> list[int]:
        return [0, *itertools.accumulate(self.counts)]


@dataclass(frozen=True)
class Queue:
    """Management of the buffer in front of a link; sizes in bytes, times in ns, None where it does not apply.

    kind: droptail, red, red_packets, codel, fq_codel, pie, cake, dualpi2 or policer
    weight: RED's w_q; probability: RED's max_p; adaptive: RED sets max_p itself (Floyd et al. 2001)
    min_packets, max_packets, gentle: of red_packets, whose queue is in packets; gentle: above max the share rises to 1
    step_ns, any_ect: of dualpi2: from which delay on its low-latency queue marks everything, and whether packets with ECT(0) go there too
    """

    kind: str = "droptail"
    ecn: bool = False
    min_bytes: int | None = None
    max_bytes: int | None = None
    probability: float | None = None
    weight: float | None = None
    packet_bytes: int | None = None
    min_packets: int | None = None
    max_packets: int | None = None
    gentle: bool = False
    adaptive: bool = False
    target_ns: int | None = None
    interval_ns: int | None = None
    step_ns: int | None = None
    any_ect: bool = False


DROPTAIL = Queue()


def byte_survival(bit_error_rate: float) -> float:
    """Probability that the eight bits of a byte arrive unharmed."""
    return math.exp(8 * math.log1p(-bit_error_rate))


def bit_error_rate(loss: float, packet_bytes: int) -> float:
    """The bit error rate at which packets of that length are lost with that probability: 1 - (1 - loss)^(1 / 8L)."""
    return -math.expm1(math.log1p(-loss) / (8 * packet_bytes))


def loss_by_size(bit_error_rate: float, frame_bytes: int) -> float:
    """Loss of frames of that length: 1 - (1 - BER)^(8 L)."""
    return -math.expm1(8 * frame_bytes * math.log1p(-bit_error_rate))
