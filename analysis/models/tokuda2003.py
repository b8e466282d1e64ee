# SPDX-License-Identifier: Apache-2.0
"""Tokuda 2003: the analysis of s4.2 (windows, drops and throughput of a HighSpeed and a Reno connection, eqs 5-6), and what it decides.

mu, mu_reno: packets per second of the bottleneck and of Reno's access link; B: buffer, packets; tau: one-way delay, s.
a(w), b(w): kernels/reference/highspeed.py. Open in the thesis, and chosen here: min(W_Reno, w_lim) also in eq 5, the drops and the queue
(as printed, Reno gets more than its access link); a part of a packet below one is no drop; ssthresh after a cut is the window after it.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from analysis.models.checks import Check, decides, near, printed, relation
from kernels.reference.ghighspeed import GentleHighSpeed
from kernels.reference.highspeed import THESIS, table
from schema.catalogue import Entry

PACKET_BITS = 12_000
MU = 1e9 / PACKET_BITS
ACCESS_S = 0.010
"""One way over the hosts' links: 5 ms on each side."""
DELAYS_MS = (5, 10, 25, 50, 75, 100)
ACCESS_MBPS = (100.0, 12.0, 1.5)
CYCLES = 60


@dataclass(frozen=True)
class Path:
    mu: float
    mu_reno: float
    B: float
    tau: float

    @property
    def w_lim(self) -> float:
        """Packets in flight that Reno's access link allows."""
        return 2 * self.tau * self.mu_reno


@dataclass
class Connection:
    """A window with its growth per round trip and what a loss leaves of it.

    timeouts: as the thesis has it; without them a burst of losses costs one cut, which is what SACK makes of it
    """

    grows: Callable[[float], float]
    cut: Callable[[float], float]
    timeouts: bool = True
    W: float = 1.0
    ssthresh: float = math.inf
    sent: float = 0.0

    def grow(self, acked: float) -> None:
        """A round trip in which `acked` packets of the window were acknowledged."""
        self.W += acked if self.ssthresh > self.W else self.grows(self.W) * acked / self.W

    def lose(self, dropped: float) -> None:
        """One or two drops cost a cut each; three or more end in a timeout."""
        if dropped < 1:
            return
        self.W = self.cut(self.W)
        if dropped >= 2 and self.timeouts:
            self.W = self.cut(self.W)
        self.ssthresh = self.W
        if dropped >= 3 and self.timeouts:
            self.W, self.ssthresh = 1.0, self.W / 2


def throughput_mbps(path: Path, cycles: int = CYCLES, *, timeouts: bool = True) -> tuple[float, float]:
    """(Reno, HighSpeed): windows over round-trip times, added up over the cycles (eqs 5 and 6)."""
    reno = Connection(lambda _: 1.0, lambda W: W / 2, timeouts)
    fast = Connection(THESIS.a, lambda W: (1 - THESIS.b(W)) * W, timeouts)
    whole, time_s = 2 * path.tau * path.mu + path.B, 0.0
    for _ in range(cycles):
        while True:
            slow = min(reno.W, path.w_lim)
            queue_s = max(slow + fast.W - 2 * path.mu * path.tau, 0.0) / path.mu
            reno.sent, fast.sent, time_s = reno.sent + slow, fast.sent + fast.W, time_s + queue_s + 2 * path.tau
            if slow + fast.W > whole:
                break
            fast.grow(fast.W)
            reno.grow(slow)
        slow = min(reno.W, path.w_lim)
        dropped = slow + fast.W - whole
        for one, share in ((reno, slow / (slow + fast.W)), (fast, fast.W / (slow + fast.W))):
            one.lose(share * dropped)
    return reno.sent / time_s * PACKET_BITS / 1e6, fast.sent / time_s * PACKET_BITS / 1e6


@functools.cache
def figure_6(
    access_mbps: float, *, buffer: float | None = None, timeouts: bool = True
) -> list[tuple[int, float, float]]:
    """(delay of the link in ms, Reno, HighSpeed in Mbit/s); buffer: packets, None for what the link itself holds there and back."""
    points = []
    for delay_ms in DELAYS_MS:
        B = 2 * delay_ms / 1e3 * MU if buffer is None else buffer
        path = Path(MU, access_mbps * 1e6 / PACKET_BITS, B, ACCESS_S + delay_ms / 1e3)
        points.append((delay_ms, *throughput_mbps(path, timeouts=timeouts)))
    return points


@decides("tokuda2003-s1-reno-10g")
def _ten_gigabit(entry: Entry) -> Iterator[Check]:
    """The two claims say the four numbers again, in pairs."""
    W = 10e9 * 0.1 / PACKET_BITS
    rounds, least = W / 2, printed(entry, "recovery_rtts_above")
    says = "from W/2 to W at one packet per round trip"
    digit = "printed as a bound with one digit: within a tenth (ours)"
    of_claim = {
        "1": (
            near(entry, "window_packets", W, "10 Gbit/s x 100 ms in packets of 1500 bytes", 1e-4),
            near(entry, "loss_rate_below", 1.5 / W**2, "1.5/W^2", 0.1, digit),
        ),
        "2": (
            Check("recovery_rtts_above", says, rounds > least, least, rounds),
            near(entry, "recovery_s_about", rounds * 0.1, f"{says}, 100 ms each", 0.1),
        ),
    }
    for part, checks in of_claim.items():
        for one in checks:
            yield one
            yield replace(one, part=part)


@decides("tokuda2003-s2.2-response")
def _response(entry: Entry) -> Iterator[Check]:
    w_low = float(printed(entry, "w_low"))
    yield Check(
        "w_low",
        "of the specification and the module's table",
        THESIS.w_low == w_low == table(THESIS)[0][0],
        w_low,
        THESIS.w_low,
    )
    yield near(entry, "p_high", THESIS.p(THESIS.w_high), "p(w_high)", 1e-9)
    yield near(entry, "b_high", THESIS.b(THESIS.w_high), "b(w_high)", 1e-9)
    below = all(THESIS.a(w) == 1 and THESIS.b(w) == 0.5 for w in (1, 10, w_low))
    yield relation("1", "a = 1 and b = 1/2 up to w_low", below)
    points = [w_low * 2 ** (i / 4) for i in range(1, 45)]
    values = [(THESIS.a(w), THESIS.b(w)) for w in points if w < THESIS.w_high]
    steps = list(itertools.pairwise(values))
    yield relation(
        "2", f"a rises and b falls over {len(values)} windows", all(x[0] < y[0] and x[1] > y[1] for x, y in steps)
    )
    share = math.isclose(THESIS.p(THESIS.w_high), float(printed(entry, "p_high")), rel_tol=1e-9)
    yield relation("3", "p(w_high) is P_high", share)


@decides("tokuda2003-s4.2-model")
def _model(entry: Entry) -> Iterator[Check]:
    for access in ACCESS_MBPS:
        for delay_ms, reno, fast in figure_6(access):
            if reno > access or reno + fast > 1000:
                yield relation(
                    "throughput",
                    f"{access:g} Mbit/s, {delay_ms} ms: more than a link carries",
                    holds=False,
                    computed=(reno, fast),
                )
                return
    says = "with min() in eq 5 no connection has more than its links on the 18 paths of Fig 6"
    yield relation("throughput", says, holds=True)
    cuts = Connection(lambda _: 1.0, lambda W: W / 2, W=64.0)
    cuts.lose(3.0)
    yield relation(
        "1",
        "three losses of a window of 64: window 1, ssthresh half of what two cuts leave",
        (cuts.W, cuts.ssthresh) == (1, 8),
    )


def _figure_6(entry: Entry, access: float) -> Iterator[Check]:
    points = figure_6(access)
    fast = [f"{x:.0f}" for _, _, x in points]
    reno = [f"{x:.4g}" for _, x, _ in points]
    what = "the analysis of s4.2, buffer of the link's BDP, 5 to 100 ms; Mbit/s"
    yield relation("2", f"{what}: HighSpeed", points[-1][2] > points[0][2] and _mostly(points, 2, rising=True), fast)
    yield relation("3", f"{what}: Reno", points[-1][1] < points[0][1] and _mostly(points, 1, rising=False), reno)


def _mostly(points: list[tuple[int, float, float]], column: int, *, rising: bool) -> bool:
    """At most one step goes the other way: cycles of few drops end in one cut or two, which makes the curve jump."""
    steps = [(b[column] > a[column]) == rising for a, b in itertools.pairwise(points)]
    return steps.count(False) <= 1


def slow_start(pipe: float, buffer: float, max_ssthresh: float = math.inf) -> tuple[int, float]:
    """(round trips until the pipe is full, packets by which the window grows in the round that overflows the buffer), from one packet.

    So many packets are the most that the end of slow start loses.

    Above max_ssthresh the window grows by W/K a round trip, K = floor(W / (max_ssthresh / 2)): limited slow start (RFC 3742 s2).
    """
    W, rounds, full, growth = 1.0, 0, 0, 0.0
    while pipe + buffer >= W:
        growth = W if max_ssthresh >= W else W / math.floor(W / (max_ssthresh / 2))
        W, rounds = W + growth, rounds + 1
        full = full or (rounds if pipe <= W else 0)
    return full, growth


PIPE, BUFFER = MU * 0.08, MU * 0.05
"""Packets of the path of Fig 1 and of its buffer, which holds what the link itself does there and back."""


@decides("tokuda2003-fig3a")
def _figure_3a(entry: Entry) -> Iterator[Check]:
    fast, slow = slow_start(PIPE, BUFFER)[1], slow_start(PIPE / 10, BUFFER / 10)[1]
    says = (
        "packets that the end of slow start can lose on the path of Fig 1, and on one of a tenth of its rate and buffer"
    )
    yield relation("3", says, fast > slow, [round(fast), round(slow)])


@decides("tokuda2003-s3-limited-slow-start")
def _limited_slow_start(entry: Entry) -> Iterator[Check]:
    thresholds = (100.0, 1000.0, 5000.0, math.inf)
    here = [slow_start(PIPE, BUFFER, threshold) for threshold in thresholds]
    says = "thresholds of 100, 1000 and 5000 packets and none: round trips until the path of Fig 1 is full"
    rounds = [full for full, _ in here]
    yield relation("1", says, rounds == sorted(rounds, reverse=True) and rounds[0] > 2 * rounds[-1], rounds)
    lost = [growth for _, growth in here]
    says = "the same: packets that it can lose where the buffer overflows, so that a low threshold delays and a high one loses"
    yield relation("2", says, lost == sorted(lost) and lost[0] < lost[-1], [round(x) for x in lost])
    there = [slow_start(PIPE / 10, BUFFER / 10, threshold) for threshold in (5000.0, math.inf)]
    says = "5000 packets, which limit there, change nothing on a path of a tenth of the rate: round trips and losses with it and without"
    yield relation("2", says, there[0] == there[1], [(full, round(lost)) for full, lost in there])


@decides("tokuda2003-fig6a")
def _figure_6a(entry: Entry) -> Iterator[Check]:
    yield from _figure_6(entry, 100.0)
    lost = {access: 1 - figure_6(access)[-1][1] / access for access in ACCESS_MBPS}
    says = "share of its access rate that Reno lacks at 100 ms, 100, 12 and 1.5 Mbit/s"
    yield relation("4", says, lost[100.0] == max(lost.values()), [f"{x:.2f}" for x in lost.values()])


@decides("tokuda2003-fig6b")
def _figure_6b(entry: Entry) -> Iterator[Check]:
    yield from _figure_6(entry, 12.0)


@decides("tokuda2003-fig6c")
def _figure_6c(entry: Entry) -> Iterator[Check]:
    yield from _figure_6(entry, 1.5)


@decides("tokuda2003-fig6-order")
def _order(entry: Entry) -> Iterator[Check]:
    lost = [access - figure_6(access)[-1][1] for access in ACCESS_MBPS]
    shares = [x / access for x, access in zip(lost, ACCESS_MBPS, strict=True)]
    says = "share of its access rate that Reno lacks by the analysis at 100 ms, 100, 12 and 1.5 Mbit/s"
    why = f"counted in Mbit/s Reno lacks {lost[0]:.0f}, {lost[1]:.1f} and {lost[2]:.2f}, which is the printed order"
    yield Check("1", says, shares[0] > shares[1] > shares[2], None, [f"{x:.2f}" for x in shares], "order",
                "100 Mbit/s lacks most; the other two about the same share", why if lost[0] > lost[1] > lost[2] else "")  # fmt: skip


def left_to_gain(*, timeouts: bool) -> float:
    """What a connection that fills the link beside the same Reno has over HighSpeed, less one, at most on the paths of Fig 6."""
    points = [point for access in ACCESS_MBPS for point in figure_6(access, timeouts=timeouts)]
    return max((MU * PACKET_BITS / 1e6 - reno) / fast - 1 for _, reno, fast in points)


@decides("tokuda2003-abstract-30-percent")
def _gain(entry: Entry) -> Iterator[Check]:
    """s5.2 has Gentle HighSpeed fill the link: what the analysis leaves unused beside HighSpeed is what there is to gain."""
    by_thesis, by_sack = (left_to_gain(timeouts=timeouts) for timeouts in (True, False))
    words = "percent that filling the link adds to HighSpeed's throughput by the analysis of s4.2, at most on the paths of Fig 6"
    printed_percent = float(printed(entry, "gain_up_to_percent"))
    close = {way: abs(100 * way - printed_percent) <= 5 for way in (by_thesis, by_sack)}
    reason = "within 5 (ours)"
    yield Check(
        "gain_up_to_percent", words, close[by_thesis], printed_percent, round(100 * by_thesis, 1), "value", reason
    )
    yield Check(
        "1",
        f"{words}, where a burst of losses costs one cut, as with SACK",
        close[by_sack],
        printed_percent,
        round(100 * by_sack, 1),
        "order",
        reason,
        f"with the timeouts of s4.2 filling the link adds up to {100 * by_thesis:.0f} % to HighSpeed, where a burst costs one cut, as with "
        f"SACK, {100 * by_sack:.0f} %: HighSpeed nearly fills it itself, and a flow that leaves Reno more has less",
    )


@decides("tokuda2003-s5.1.1-slow-start")
def _first_loss(entry: Entry) -> Iterator[Check]:
    """By the executable specification, and by the path of Fig 1: 6667 packets in flight and 4167 in the buffer fill it."""
    spec = GentleHighSpeed(100.0)
    spec.on_loss(1.0)
    spec.on_recovered(0, 0)
    for key, value in (("window", spec.cwnd), ("ssthresh", spec.ssthresh)):
        share = float(printed(entry, key).removeprefix("W/"))
        yield Check(
            key, "after the first loss of the specification, at W = 100", value == 100 / share, 100 / share, value
        )
    overflow = PIPE + BUFFER
    says = f"on the path of Fig 1 {BUFFER:.0f} of {overflow:.0f} packets are queued when it overflows"
    yield relation("1", says, overflow / 2 > BUFFER)
    yield relation("2", "the same, against W/4", overflow / 4 < BUFFER)


@decides("tokuda2003-s5.1.2-modes")
def _modes(entry: Entry) -> Iterator[Check]:
    after: dict[bool, float] = {}
    for rising in (True, False):
        spec = GentleHighSpeed(1000.0)
        spec.ssthresh = 10.0
        spec.reno_mode = not rising
        for i in range(40 * 1000 // 8):
            spec.on_sample(0.1 + (0.00001 * i if rising else -0.000001 * i), 1, 1 + i / 1000)
        part = "2" if rising else "1"
        yield relation(
            part, f"mode of the specification after {'rising' if rising else 'falling'} RTTs", spec.reno_mode is rising
        )
        spec.on_loss(10.0)
        after[spec.reno_mode] = spec.ssthresh
    yield relation(
        "3",
        "window after a loss in Reno mode and in HighSpeed mode, at 1000 packets",
        len(set(after.values())) == 1,
        list(after.values()),
    )
    spec = GentleHighSpeed(1000.0)
    spec.ssthresh = 10.0
    spec.on_loss(1.0)
    spec.on_timeout(0, 0)
    yield relation(
        "4",
        "window and ssthresh after a timeout at 1000 packets",
        (spec.cwnd, spec.ssthresh) == (1, 500),
        (spec.cwnd, spec.ssthresh),
    )
