# SPDX-License-Identifier: Apache-2.0
"""Kato 2012 s5.2.2 by the thesis' own rules: what TTFWC and Reno flows get from the testbed's 10 Mbit/s together, round by round.

All flows have the same RTT, so that a round is one for all of them. What does not fit the queue of 50 slots is lost; a flow that lost a
packet follows its rule for a loss, the others that for none. There are no timeouts, and a recovery takes no time, so that nothing depends
on how a kernel resends. Which of a round's packets are lost is drawn in one of two ways:

- among all packets, as where nothing ties a packet's place in the queue to its flow;
- among those that windows added since the round before, as where each flow's packets keep their places in a full queue and the added
  ones find it full (the phase of docs/numbers.md). Reno adds one in every round, TTFWC in few.
"""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Iterator

from analysis.models.checks import Check, Decider, decides, relation
from analysis.models.kato2012 import ALIKE
from kernels.reference.base import Ack
from kernels.reference.ttfwc import Ttfwc
from schema.catalogue import Entry

FLOWS = 3
"""Of each kind."""
PACKET_BITS = 1500 * 8
RATE_BPS, SLOTS = 10e6, 50
RTTS_S = (0.016, 0.320)
SECONDS, LEFT_OUT_S, SEEDS = 200.0, 20.0, (1, 2, 3)


@functools.cache
def share_of_reno(tp: float, rtt_s: float, seed: int, *, added_only: bool) -> float:
    """Packets of TTFWC over those of Reno. added_only: lost are packets that windows added."""
    draws = random.Random(seed)  # noqa: S311 (a simulation's)
    pipe = RATE_BPS * rtt_s / PACKET_BITS
    smooth = [Ttfwc(2.0, tp=tp) for _ in range(FLOWS)]
    delivered = [0] * FLOWS
    reno, ssthresh = [2.0] * FLOWS, [math.inf] * FLOWS
    before = [0.0] * (2 * FLOWS)
    sent = [0.0] * (2 * FLOWS)
    time_s = 0.0
    while time_s < SECONDS:
        windows = [*(float(flow.window) for flow in smooth), *reno]
        total = sum(windows)
        queue = min(max(0.0, total - pipe), float(SLOTS))
        time_s += rtt_s + queue * PACKET_BITS / RATE_BPS
        lost = _losers(draws, windows, before, math.ceil(total - pipe - SLOTS), added_only=added_only)
        if time_s > LEFT_OUT_S:
            sent = [had + window for had, window in zip(sent, windows, strict=True)]
        before = windows
        for i, flow in enumerate(smooth):
            delivered[i] += flow.window
            if i in lost:
                flow.on_delivered(delivered[i])
                flow.on_loss(time_s)
                flow.on_recovered(delivered[i], 0)
            else:
                flow.on_ack(Ack(flow.window, time_s, rtt_s, delivered[i], 0))
        for i in range(FLOWS):
            if FLOWS + i in lost:
                reno[i] = ssthresh[i] = max(2.0, reno[i] // 2)
            else:
                reno[i] = min(2 * reno[i], ssthresh[i]) if reno[i] < ssthresh[i] else reno[i] + 1
    return sum(sent[:FLOWS]) / sum(sent[FLOWS:])


def _losers(
    draws: random.Random, windows: list[float], before: list[float], too_many: int, *, added_only: bool
) -> set[int]:
    """Flows of which one of the round's `too_many` packets is lost."""
    if too_many <= 0:
        return set()
    added = [max(0.0, now - then) for now, then in zip(windows, before, strict=True)]
    weights = added if added_only and any(added) else windows
    return set(draws.choices(range(len(windows)), weights, k=too_many))


def _mean(tp: float, rtt_s: float, *, added_only: bool) -> float:
    return sum(share_of_reno(tp, rtt_s, seed, added_only=added_only) for seed in SEEDS) / len(SEEDS)


def _beside_reno(tp: float) -> Decider:
    def decide(entry: Entry) -> Iterator[Check]:
        for rtt_s in RTTS_S:
            any_packet, added = (_mean(tp, rtt_s, added_only=way) for way in (False, True))
            words = f"TTFWC({tp}) over Reno by the thesis' own rules, 3 and 3 flows, RTT of {1000 * rtt_s:.0f} ms, lost packets drawn among"
            alike, apart = (ALIKE[0] <= ratio <= ALIKE[1] for ratio in (any_packet, added))
            why = (
                f"{words} all: {any_packet:.2f}; among those that windows added, as where the phase of packets in a full queue decides: "
                f"{added:.2f}, since Reno adds one in every round"
            )
            for part in ("1", "2"):
                yield relation(part, f"{words} all", alike, round(any_packet, 2))
                yield Check(part, why, alike and not apart, None, round(added, 2), "order", explains=True)

    return decide


for _figure, _tp in (("5.16", 0.0), ("5.17", 0.4), ("5.18", 0.9)):
    decides(f"kato2012-fig{_figure}")(_beside_reno(_tp))
