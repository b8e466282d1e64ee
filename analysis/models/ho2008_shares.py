# SPDX-License-Identifier: Apache-2.0
"""Ho 2008 section 5.5 by the thesis' own rules: what flows of FAST leave to flows of SACK that share a drop-tail buffer, round by round.

All flows have the same RTT (Fig 5.17), so that a round is one for all of them. What does not fit the buffer is lost, drawn among the
packets of the round; a flow that lost one follows its rule for a loss, the others that for none. There are no timeouts and no slow
start, and a recovery takes no time, so that nothing depends on how a simulator or a kernel resends. Symbols as in ho2008.py.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator
from dataclasses import dataclass

from analysis.models.checks import Check, Decider, decides
from schema.catalogue import Entry

BDP = 100e6 * 0.050 / 8000
"""Packets of 1000 bytes in 50 ms of 100 Mbit/s: 625."""
BUFFERS = (3000, 200)
FLOWS = 20
MIXES = {1: "5.18", 3: "5.19", 5: "5.20", 8: "5.21", 10: "5.22", 12: "5.23", 15: "5.24", 17: "5.25", 19: "5.26"}
"""Flows of FAST in each figure; the others are SACK."""
ALPHA, GAMMA = 100.0, 0.5
"""Of FAST: s2.5, and the middle of its range."""
ROUNDS, LEFT_OUT = 4000, 1000
"""A saw-tooth of one SACK flow in 3000 packets has about 700 rounds."""


def sack(W: float, RTT: float, lost: bool) -> float:
    """s2.3. RTT: over BaseRTT."""
    return max(2.0, W / 2) if lost else W + 1


def fast(W: float, RTT: float, lost: bool) -> float:
    """s2.5."""
    return max(2.0, W / 2) if lost else min(2 * W, (1 - GAMMA) * W + GAMMA * (W / RTT + ALPHA))


@dataclass(frozen=True)
class Shares:
    """Packets a BaseRTT, mean of the flows of a kind; queue: mean of packets queued."""

    sack: float
    fast: float
    queue: float


@functools.lru_cache
def shares(m: int, buffer: int) -> Shares:
    """m flows of FAST beside 20 - m of SACK; all begin with two packets."""
    draws = random.Random(2008)  # noqa: S311 (a simulation's)
    rules = [fast] * m + [sack] * (FLOWS - m)
    windows = [2.0] * FLOWS
    sent = [0.0] * FLOWS
    area = 0.0
    time = 0.0
    for number in range(ROUNDS):
        total = sum(windows)
        too_many = max(0.0, total - BDP - buffer) / total
        queue = min(max(0.0, total - BDP), float(buffer))
        RTT = 1 + queue / BDP
        if number >= LEFT_OUT:
            sent = [before + W * (1 - too_many) for before, W in zip(sent, windows, strict=True)]
            area, time = area + queue * RTT, time + RTT
        windows = [
            rule(W, RTT, too_many > 0 and draws.random() >= (1 - too_many) ** W)
            for rule, W in zip(rules, windows, strict=True)
        ]
    rates = [one / time for one in sent]
    return Shares(sum(rates[m:]) / (FLOWS - m), sum(rates[:m]) / m, area / time)


def _checks(part: str, m: int) -> Iterator[Check]:
    mix = f"{m} of FAST beside {FLOWS - m} of SACK"
    times = {buffer: shares(m, buffer).fast / shares(m, buffer).sack for buffer in BUFFERS}
    for buffer in BUFFERS:
        share_of = shares(m, buffer)
        wanted, share = ALPHA * (BDP + buffer) / buffer, (BDP + buffer) / FLOWS
        yield Check(
            part,
            f"{mix}, {buffer} packets, by the rules of s2.3 and s2.5: packets a BaseRTT of a SACK flow and of one of FAST",
            share_of.sack > share_of.fast,
            None,
            [round(share_of.sack, 1), round(share_of.fast, 1)],
            "order",
            "the figure against the thesis' own rules",
            f"{mix}: by the rules of s2.3 and s2.5 alone FAST has {times[buffer]:.1f} times what SACK has in {buffer} packets, "
            f"and {times[BUFFERS[0]]:.2f} times in {BUFFERS[0]}: a full buffer of {buffer} lets its equation ask for {wanted:.0f} "
            f"packets, where an equal share is {share:.0f}",
        )


def _figure(m: int) -> Decider:
    def decide(entry: Entry) -> Iterator[Check]:
        yield from _checks("2", m)

    return decide


for _m, _figure_number in MIXES.items():
    decides(f"ho2008-fig{_figure_number}")(_figure(_m))


@decides("ho2008-s5.5-summary")
def _summary(entry: Entry) -> Iterator[Check]:
    for m in MIXES:
        yield from _checks("1", m)
