# SPDX-License-Identifier: Apache-2.0
"""Afifi 2014 chapter 6: FTAT's steady state, and what it decides.

B: share of the bandwidth, packets/s; p: probability of a loss signal per ACK; RTT: mean round-trip time, s; T: throughput, packets/s.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence

from analysis.models.checks import Check, decides, relation
from kernels.reference.astart import Westwood
from kernels.reference.ftat import Ftat, Phase, throughput
from kernels.reference.westwood import GAIN, WestwoodPlus
from schema.catalogue import Entry

__all__ = ["fixed_point", "throughput"]
PATHS = tuple(
    (B, rtt, p) for B in (100.0, 1000.0, 2332.0) for rtt in (0.05, 0.2, 0.54) for p in (0.001, 0.01, 0.02, 0.05)
)
"""Of the catalogue's sweep."""


def fixed_point(B: float, p: float, rtt_s: float, acks: int = 200_000) -> float:
    """Where the per-ACK rule leads: cwnd changes by (1 - p)/cwnd + (B RTT - cwnd) p, so that cwnd / RTT is T."""
    cwnd = 1.0
    for _ in range(acks):
        change = (1 - p) / cwnd + (B * rtt_s - cwnd) * p
        if abs(change) < 1e-12:
            break
        cwnd += change
    return cwnd / rtt_s


@decides("afifi2014-eq6.1")
def _steady_state(entry: Entry) -> Iterator[Check]:
    apart = [abs(fixed_point(B, p, rtt) / throughput(B, p, rtt) - 1) for B, rtt, p in PATHS]
    yield relation(
        "1",
        f"the rule applied ACK by ACK ends at T on {len(PATHS)} paths",
        max(apart) < 1e-3,
        f"{max(apart):.1e} apart",
    )
    roots = [
        abs(throughput(B, p, rtt) ** 2 - B * throughput(B, p, rtt) - (1 - p) / (rtt**2 * p)) for B, rtt, p in PATHS
    ]
    yield relation(
        "2",
        "T is a root of the quadratic, and the positive one",
        max(roots) < 1e-3 and all(throughput(*x) > 0 for x in PATHS),
    )


@decides("afifi2014-claim6.2")
def _stability(entry: Entry) -> Iterator[Check]:
    above = [throughput(B, p, rtt) / B for B, rtt, p in PATHS]
    why = "T (T - B) = (1 - p)/(RTT^2 p) is above 0 for p < 1, so the theorem puts T above B on every path"
    words = f"T/B by the theorem on {len(PATHS)} paths: {min(above):.5f} to {max(above):.3g}"
    yield Check(
        "1", words, max(above) <= 1, None, max(above), "order", "the corollary against the theorem before it", why
    )


# Definitions of the algorithms that FTAT is compared with, and of FTAT itself, on the specifications of kernels/reference, against
# which the kernel modules are held (tests/kernels).

FIRST_WINDOW = 45.0
"""64 KB in packets of 1448 bytes."""
RTT_S = 0.1


WINDOW = 78
"""Packets under way when the first of them is lost, as in the run that holds Table 3 against Linux (windows.yml)."""


def by_table_3(window: int) -> list[float]:
    """Window after each duplicate ACK and after the ACK that ends the recovery: threshold and three packets, one more a duplicate."""
    threshold = max(window / 2, 2)
    grown = [threshold + duplicate for duplicate in range(3, window)]
    return [window, window, window, *grown, threshold]


def by_proportional_reduction(window: int) -> list[float]:
    """The same by RFC 6937 s3, which Linux has: each ACK lets go what the threshold's share of the delivered packets asks for."""
    threshold = max(window // 2, 2)
    seen: list[float] = [window, window, window]
    flight, sent = (
        window - 3,
        0,
    )  # two duplicates have left it; the lost packet leaves it with the third, and is sent again
    for delivered in range(3, window):
        flight -= 1
        share = -(-delivered * threshold // window) - sent
        may = share if flight > threshold else min(threshold - flight, max(delivered - sent, 1) + 1)
        may = max(may, 1 if delivered == 3 else 0)
        flight, sent = flight + may, sent + may
        seen.append(flight)
    return [*seen, threshold]


def falls_at_once(windows: Sequence[float]) -> int:
    """Steps from a window to half of it and three packets (within one)."""
    return sum(abs(low - (high / 2 + 3)) <= 1 for high, low in itertools.pairwise(windows) if low < high - 2)


@decides("afifi2014-tab3")
def _recovery(entry: Entry) -> Iterator[Check]:
    here, thesis = by_proportional_reduction(WINDOW), by_table_3(WINDOW)
    shown = falls_at_once(thesis) == 1 and here[-1] == thesis[-1] == WINDOW / 2
    why = (
        f"with Table 3's rule in its place the same ACKs set the window from {WINDOW} to {thesis[3]:.0f} packets at the third duplicate, "
        f"and end at {thesis[-1]:.0f} as well"
    )
    words = f"steps in which a window of {WINDOW} packets falls to its threshold and three packets, by RFC 6937 as Linux has it"
    step = f"its longest step is {_longest(here):.0f} packets"
    yield Check("1", words, falls_at_once(here) == 1, 1, falls_at_once(here), "order", step, why if shown else "")


def _longest(windows: Sequence[float]) -> float:
    return max(a - b for a, b in itertools.pairwise(windows))


@decides("afifi2014-tab5")
def _westwood_filter(entry: Entry) -> Iterator[Check]:
    tau, draw, apart = 0.5, random.Random(1), 0.0  # noqa: S311 (no secret)
    filtered, B, before, last = Westwood(tau), 0.0, 0.0, 0.0
    for _ in range(1000):
        dt, acked = draw.uniform(0.001, 0.2), draw.randint(1, 4)
        b = acked / dt
        a = (2 * tau - dt) / (2 * tau + dt)
        B = a * B + (1 - a) * (b + before) / 2
        filtered.add(acked / dt, dt)
        before, last = b, filtered.estimate
        apart = max(apart, abs(last - B) / B)
    yield relation(
        "1",
        "the filter of Table 5 and the specification's over 1000 ACKs drawn by seed",
        apart < 1e-9,
        f"{apart:.1e} apart",
    )


def counted(steps: Sequence[int], *, own: int = 0) -> int:
    """Packets that Table 6 counts; steps: of each ACK how many packets it acknowledges, 0 for a duplicate.

    own: how many of a smaller cumulative ACK's packets were not counted before (Table 6 leaves none)
    """
    total = accounted_for = 0
    for step in steps:
        count = step
        if step == 0:
            accounted_for, count = accounted_for + 1, 1
        elif step > 1 and accounted_for >= step:
            accounted_for, count = accounted_for - step + own, 1
        elif step > 1:
            count, accounted_for = step - accounted_for, 0
        total += count
    return total


def acks_of_window(packets: int, lost: Sequence[int]) -> list[int]:
    """Steps of the ACKs of a window: duplicates for what comes after the first hole, then one for each packet that is sent again."""
    whole = [1] * (lost[0] if lost else packets)
    if not lost:
        return whole
    duplicates = [0] * (packets - lost[0] - len(lost))
    return [*whole, *duplicates, *(b - a for a, b in itertools.pairwise([*lost, packets]))]


@decides("afifi2014-tab6")
def _counting(entry: Entry) -> Iterator[Check]:
    delayed = [[2] * n for n in range(1, 50)]
    single = [acks_of_window(n, [i]) for n in range(4, 40) for i in range(n - 3)]
    right = all(counted(steps) == sum(steps) for steps in (*delayed, *single))
    yield relation(
        "1", "packets counted and packets delivered, with ACKs for every second packet and in windows that lose one", right,
        f"the same in {len(delayed) + len(single)} cases",
    )  # fmt: skip
    double = [acks_of_window(n, [i, j]) for n in range(8, 24) for i in range(2) for j in range(i + 2, n // 2)]
    over = [counted(steps) - sum(steps) for steps in double]
    mended = all(counted(steps, own=1) == sum(steps) for steps in double)
    why = "where a partial ACK takes off what it acknowledges less the packet that was sent again, all of these windows are counted right"
    yield Check(
        "1", "the same in windows that lose two packets: packets counted too many, least and most", not any(over), None,
        [min(over), max(over)], "order", "a partial ACK takes off a duplicate for the packet that was sent again as well",
        why if mended else "",
    )  # fmt: skip


@decides("afifi2014-tab7")
def _westwood_plus_filter(entry: Entry) -> Iterator[Check]:
    plus, now, rates, steps = WestwoodPlus(), 0.0, [], 0
    for rate in [100.0] * 200 + [200.0] * 400:  # packets/s, an ACK every 10 ms
        now += 0.01
        plus.add(rate * 0.01, now, RTT_S)
        rates.append(plus.estimate)
    one_per_round = plus.samples <= now / RTT_S + 1
    yield relation("1", f"samples in {now:.0f} s with an RTT of {RTT_S} s", one_per_round, plus.samples)
    thesis, here, table, once, twice = [], [], 100.0, 100.0, 100.0
    for steps in range(1, 60):
        table = 0.9 * table + 0.1 * 200
        once += GAIN * (200 - once)
        twice += GAIN * (once - twice)
        thesis += [steps] if table >= 163.2 else []
        here += [steps] if twice >= 163.2 else []
    yield Check("1", "samples until the estimate has gone 63 % of a step: by Table 7's filter, by that of Linux",
                thesis[0] == here[0], thesis[0], here[0], "order", "Linux has two filters of gain 1/8 in a row",
                "one filter of gain 0.1 in their place takes as many samples as Table 7's")  # fmt: skip


@decides("afifi2014-fig8")
def _state_machine(entry: Entry) -> Iterator[Check]:
    flow = _begun()
    start = flow.window
    for i in range(1, 31):  # 30 packets in the first round trip
        _acked(flow, i, 0.1 + 0.003 * i)
    _acked(flow, 31, 0.1 + 2.5 * RTT_S)
    yield relation(
        "1",
        "first window, and that after a round trip in which 31 packets were acknowledged",
        (start, flow.window) in ((45, 30), (45, 31)),
        [start, flow.window],
    )
    flow = Ftat(FIRST_WINDOW)
    flow.phase, flow.threshold, flow.cwnd, flow.srtt = Phase.INCREASE, 80.0, 60.0, RTT_S
    grown = []
    for window in (20.0, 60.0, 90.0):  # below 64 KB; below the threshold; above both
        flow.cwnd = window
        for _ in range(10):
            flow.on_control(1, 1.0, loss=False, limited=True, idle=False)
        grown.append(round(flow.cwnd - window, 2))
    yield relation(
        "2",
        "what ten ACKs add to 20, 60 and 90 packets with a threshold of 80",
        grown[0] == grown[1] == 10 and grown[2] < 0.12,
        grown,
    )
    flow.cwnd = 90.0
    flow.on_delivered(1000)
    flow.on_control(0, 2.0, loss=True, limited=True, idle=False)
    during, threshold = [], flow.threshold
    for i in range(1, 71):
        flow.on_delivered(1000 + i)
        flow.on_control(1, 2.0 + 0.001 * i, loss=i == 40, limited=True, idle=False)
        during.append(flow.window)
    flow.on_delivered(1071)
    flow.on_control(1, 2.0 + RTT_S + 0.001, loss=False, limited=True, idle=False)
    words = "window during the round trip after a loss at 90 packets, threshold, and the window after 70 packets were delivered in it"
    yield relation(
        "3", words, set(during) == {90} and threshold == 90 and flow.window in (70, 71), [90, threshold, flow.window]
    )
    flow.on_control(0, 3.0, loss=True, limited=True, idle=False)
    flow.on_delivered(1091)
    flow.on_timeout(1091, 0)
    ended = flow.window
    flow.on_timeout(1091, 0)
    yield relation(
        "4",
        "window after a timeout in adaptive transmission with 20 packets acknowledged, and after one in additive increase",
        (ended, flow.window) == (20, 1),
        [ended, flow.window],
    )


def _begun() -> Ftat:
    flow = Ftat(FIRST_WINDOW)
    flow.on_sample(RTT_S, 1, 0.1)
    return flow


def _acked(flow: Ftat, delivered: int, now_s: float) -> None:
    flow.on_delivered(delivered)
    flow.on_control(1, now_s, loss=False, limited=True, idle=False)
