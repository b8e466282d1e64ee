# SPDX-License-Identifier: Apache-2.0
"""What Ho 2008's own rules come to where its chapter 5 shows something else: Medley's queue (s5.2.2), and random losses (s5.4).

Symbols as in ho2008.py. A run that differs from a figure and not from the rules differs with the thesis.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator

from analysis.models.checks import Check, decides, printed
from analysis.models.ho2008 import BDPS_KBIT
from kernels.reference import medley, medley_rounds
from schema.catalogue import Entry

RUN_S, BASE_RTT_S, BUFFER = 600, 0.1, 250
"""Of s5.2.2: a run's length, BaseRTT and the larger buffer; in the rules' rounds neither 250 nor 50 packets are ever full."""
CLOSE = 0.20
"""How far a ratio may be from the printed one: ours, as for the runs of Fig 5.16."""

Rule = Callable[[float, float, bool], tuple[float, float]]
"""Of (W, I, whether the round lost a packet) the next (W, I)."""


def mean_queue(mu_d: float, buffer: float, rtts: float, *, late: bool = False) -> float:
    """Packets that Medley has queued, mean over its first BaseRTTs: Delta (eq 2.1) of each round, weighted with its length."""
    area = total = 0.0
    for now in medley_rounds.rounds(mu_d, buffer, late=late):
        area += medley.backlog(now.W, now.long_rtts, 1.0) * now.long_rtts
        total += now.long_rtts
        if total >= rtts:
            break
    return area / total


def loss_limited(after: Rule, p: float, rounds: int = 20_000) -> float:
    """Packets a round trip, on average, of a window that random losses alone hold down: no queue, no timeouts.

    p: share of packets lost. The draws are the same for every rule.
    """
    draws = random.Random(2008)  # noqa: S311 (a simulation's)
    W, I, total = 2.0, 0.0, 0.0  # noqa: E741 (the paper's symbols)
    for _ in range(rounds):
        total += math.floor(W)
        W, I = after(W, I, draws.random() >= (1 - p) ** math.floor(W))  # noqa: E741
    return total / rounds


def reno_round(W: float, I: float, lost: bool) -> tuple[float, float]:  # noqa: E741
    return (max(2.0, W / 2), 0.0) if lost else (W + 1, 0.0)


def fast_round(W: float, I: float, lost: bool) -> tuple[float, float]:  # noqa: E741
    """Eq of s2.5 with RTT = BaseRTT, gamma 1/2 and alpha 100."""
    return (max(2.0, W / 2), 0.0) if lost else (min(2 * W, W + 50), 0.0)


def medley_round(W: float, I: float, lost: bool) -> tuple[float, float]:  # noqa: E741
    """s3.2.3 with Delta = 0."""
    return (max(2.0, 3 * W / 4), 0.0) if lost else (min(W + I + 2, 2 * W), I + 2)


@decides("ho2008-s5.2.2-real-time")
def _real_time(entry: Entry) -> Iterator[Check]:
    least, most = printed(entry, "queue_range_packets")
    means = [
        mean_queue(kbit * 1000 / 8000, BUFFER, RUN_S / BASE_RTT_S, late=late)
        for kbit in BDPS_KBIT
        for late in (False, True)
    ]
    extremes = [round(min(means), 1), round(max(means), 1)]
    below = sum(mean < least for mean in means)
    says = "least and largest mean of Delta in 600 s by the rules of s3.2.3, round by round, on the eleven paths"
    why = (
        f"the rules of s3.2.3, round by round on the thesis' eleven paths, queue {extremes[0]} to {extremes[1]} packets, and {below} of "
        f"{len(means)} means are below {least} (each path by the RTTs of the round, and by those seen by its end), so that a mean below "
        "it is what the rules ask for"
    )
    holds, reason = least <= min(means) and max(means) <= most, "the thesis against its own rules"
    for part in ("queue_range_packets", "2"):
        yield Check(part, says, holds, [least, most], extremes, "value", reason, why)


@decides("ho2008-fig5.16")
def _random_loss(entry: Entry) -> Iterator[Check]:
    rows = {str(row[0]): row[1:] for row in printed(entry, "rows")}
    model = {
        p: [loss_limited(medley_round, p) / loss_limited(rule, p) for rule in (reno_round, fast_round)]
        for p in (0.005, 0.01, 0.02, 0.03, 0.05, 0.10)
    }
    text = ", ".join(f"{sack:.2f} and {fast:.2f} at {p:.1%}" for p, (sack, fast) in model.items())
    why = (
        f"by the rules of s3.2.3 and s2 alone, without timeouts, Medley has these multiples of SACK and FAST: {text}; "
        "so it is here, and FAST by its own equation, 50 packets more in a round trip, is above Medley up to 5 %"
    )
    for part, row, losses, column in (
        ("3", "0.5 to 2", (0.005, 0.01, 0.02), 1),
        ("4", "above 2, at least", (0.03, 0.05), 1),
        ("6", "10", (0.10,), 0),
    ):
        wanted, ratios = float(rows[row][2 * column]), [round(model[p][column], 2) for p in losses]
        says = f"Medley over {('SACK', 'FAST')[column]} by these rules, windows per round trip, at {', '.join(f'{p:.1%}' for p in losses)}"
        holds = all(abs(one / wanted - 1) <= CLOSE for one in ratios)
        yield Check(part, says, holds, wanted, ratios, "order", "the figure against the thesis' own rules", why)
