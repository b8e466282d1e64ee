# SPDX-License-Identifier: Apache-2.0
"""Medley alone on a path with a drop-tail buffer, round by round: Ho 2008 chapter 4 with a buffer of finite size.

Chapter 4 lets the window grow without loss.  Here a round's burst that the buffer cannot take is a loss, with the rules of
sections 3.2.3 and 2.4; all else is eqs 4.2, 4.3 and 4.5, and D also holds what stays queued once W exceeds mu d.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

from kernels.reference.medley import backlog, increment, influence, whole

MOST_ROUNDS = 20_000


@dataclasses.dataclass(frozen=True)
class Round:
    """W packets are sent in it; it begins begins_rtts of d after the first and is long_rtts long."""

    W: float
    begins_rtts: float
    long_rtts: float
    lost: bool


def rounds(bdp: float, buffer: float, *, late: bool = False, whole_packets: bool = True) -> Iterator[Round]:
    """Without end; bdp is mu d of eq 4.1 and buffer the bottleneck's queue, both in packets.

    late: a round is judged by the RTTs of the packets sent in the one before, which are those that a sender has seen by its end.
    Eq 4.2 takes the round's own; eq 4.5 the earlier ones, over fewer packets than have had them.
    whole_packets: Delta and Gamma are rounded to whole packets, as the module does; chapter 4's equations have real numbers.
    """
    counted: Callable[[float], float] = whole if whole_packets else float
    W, I, R = 2.0, 0.0, False  # noqa: E741 (the paper's symbols)
    delta_last = gamma = now = 0.0
    judged = False
    burst = previous = (0.0, 2.0)  # I and W that a round began with, and those of the round before it
    decreased = late
    while True:
        standing = max(0.0, W - bdp)
        grew, before = previous if decreased else burst  # eq 4.5 after t_1, eq 4.2 until then
        judged_packets = before + grew if late else before if decreased else W
        queued = grew * (2 * before + grew - 1) / (2 * judged_packets) if grew > 0 else 0.0
        long = 1 + (queued + standing) / bdp
        lost = max(burst[0], 0.0) + standing > buffer
        yield Round(W, now, long, lost)
        now += long
        delta = counted(backlog(W, long, 1.0))
        if I > 0:
            gamma = counted(influence(W, I, long, 1.0))
        elif gamma == 0:
            gamma = counted(influence(W, 2.0, long, 1.0))
        previous = burst
        if lost:
            R, I, delta_last = delta > gamma, 0.0, delta  # noqa: E741
            W = max(2.0, W - W // 4)
            burst = previous = (0.0, W)
            continue
        if judged:
            I = increment(I, delta, gamma, delta_last, R)  # noqa: E741
        judged, delta_last = True, delta
        decreased |= I < 0
        burst = (min(I, W), W)
        W = max(2.0, min(W + I, 2 * W))


def convergence_rtts(bdp: float, buffer: float, *, late: bool = False, whole_packets: bool = True) -> float | None:
    """BaseRTTs until the window first fills the path; None where the buffer never lets it."""
    for number, now in enumerate(rounds(bdp, buffer, late=late, whole_packets=whole_packets)):
        if bdp <= now.W and not now.lost:
            return now.begins_rtts
        if number == MOST_ROUNDS:
            return None
    raise AssertionError("rounds() does not end")
