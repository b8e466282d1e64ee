# SPDX-License-Identifier: Apache-2.0
"""Yu 2009: the fair threshold of chapter 2, slow start's length of s3.1, and gaps of packet pairs at one queue (s4.2); what they decide.

H(t): packets queued at t; a marker is a packet of size zero; service takes one unit of time a packet.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from analysis.models.checks import Check, decides, relation
from kernels.reference.base import Ack, Reno
from kernels.reference.group import Connection, Group, fair
from kernels.reference.lbc import Lbc, PerAck
from schema.catalogue import Entry

__all__ = ["backlog", "fair", "output_gap", "rounds_to"]


def rounds_to(W: float, growth: float) -> float:
    """Round trips until a window that grows by a factor has W packets: log_growth(W)."""
    return math.log(W) / math.log(growth)


def backlog(t: float, arrivals: Sequence[float], service: float = 1.0) -> float:
    """H(t): the work that packets which arrived up to t (not after) have left, in packets."""
    free = -math.inf
    for arrival in sorted(arrivals):
        if arrival > t:
            break
        free = max(free, arrival) + service
    return max(0.0, free - t) / service


def output_gap(t: float, delta: float, arrivals: Sequence[float]) -> float:
    """Of two markers that arrive at t and t + delta: (t + delta + H(t + delta)) - (t + H(t))."""
    return (t + delta + backlog(t + delta, arrivals)) - (t + backlog(t, arrivals))


PACKET_BITS = 1040 * 8
EXAMPLE = (-0.0, -0.0, -0.0, 0.5, 1.5, 1.9, 2.2, 2.9)
"""Of Fig 4-2: three packets queued at t = 0, one arrives before 1, four more before 3, none until 8."""


def _share(S: float, L: int, w_o: float) -> float:
    """All windows, shared by as many connections of w_o as there are and one more: the starting ones count as S/w_o."""
    return (S + L * w_o) / (L + S / w_o + 1)


@decides("yu2009-eq2.3")
def _fair(entry: Entry) -> Iterator[Check]:
    cases = [(S, L, w_o) for S in (0.0, 10.0, 40.0) for L in (1, 2, 5, 10, 20) for w_o in (10.0, 20.0, 50.0)]
    equal = all(math.isclose(fair(*case), _share(*case)) for case in cases)
    yield relation(
        "1", f"the specification's threshold is the sum of windows over connections and one, {len(cases)} cases", equal
    )
    shares = [fair(0, n, w_o) / w_o for n in (1, 2, 5, 10, 20) for w_o in (10.0, 20.0, 50.0)]
    fractions = [n / (n + 1) for n in (1, 2, 5, 10, 20) for _ in range(3)]
    yield relation("2", "its share of an old connection's window for n = 1 … 20 connections is n/(n+1)", all(
        math.isclose(a, b) for a, b in zip(shares, fractions, strict=True)))  # fmt: skip
    yield relation(
        "3", f"weight of the specification: {Group().alpha}", f"{Group().alpha}" in entry.published.claims[2]
    )


@decides("yu2009-claim3.1")
def _slow_start(entry: Entry) -> Iterator[Check]:
    fits = []
    for W in (8, 16, 20, 32, 64):
        counted, window = 0, 1.0
        while window < W:
            counted, window = counted + 1, window * 1.5
        fits.append(math.ceil(rounds_to(W, 1.5) - 1e-9) == counted)
    yield relation("1", "a window that grows by half per round trip takes log1.5(W) of them, W = 8 … 64", all(fits))
    rows = dict(entry.published.numbers[0]["rows"]) if isinstance(entry.published.numbers, list) else {}
    released = {"Reno, every packet ACKed": _released(PerAck(4.0), 1), "LBC, delayed ACKs": _released(Lbc(4.0), 2)}
    for name, packets in released.items():
        yield Check("numbers", f"packets that one ACK releases, {name}", packets == rows[name], rows[name], packets)
    yield relation("2", "LBC's ACK releases twice what slow start's does without delayed ACKs", list(released.values()) == [2, 4],
                   list(released.values()))  # fmt: skip


def _released(sender: Reno, acked: int) -> int:
    """Packets that an ACK of so many allows: those, and what the window grows by."""
    before = sender.cwnd
    sender.on_ack(Ack(acked, 1.0, 0.1, delivered=acked, in_flight=round(before) - acked))
    return acked + round(sender.cwnd - before)


def _miss(drops: Sequence[tuple[int, float]], connections: int) -> Group:
    group = Group(connections={who: Connection(20.0, steady=True) for who in range(connections)})
    for who, when_s in drops:
        group.loss(who, when_s)
    return group


@decides("yu2009-fig2.1")
def _in_turn(entry: Entry) -> Iterator[Check]:
    R = 0.1
    one = _miss([(0, 4.0 * i) for i in range(8)], 1)  # it dropped at 28 s last, d = 4 s
    granted = [one.miss(28.0 + past, R) for past in (0.0, 1.0, 2.5, 3.9)]
    grown = [math.floor((4.0 - past) / R + 1e-9) for past in (0.0, 1.0, 2.5, 3.9)]
    says = "packets granted 0, 1, 2.5, 3.9 s after the last of drops 4 s apart, R = 0.1 s: (d - (tc - tl))/R"
    yield relation("1", says, granted == grown, granted)
    two = _miss([(i % 2, 2.0 * i) for i in range(80)], 2)  # each every 4 s, in turn
    oldest, group = two.connections[0].drops.mean_s, two.drops.mean_s
    assert oldest is not None and group is not None
    yield relation("2", "m of two connections that drop in turn", math.isclose(oldest / group, 2), oldest / group)
    room = [two.miss(158.0 + past, R) for past in (0.0, 0.5, 1.5)]
    yield relation(
        "2",
        "packets granted 0, 0.5, 1.5 s after the path's last drop: m (ds - (tc - tl))/R",
        room == [40, 30, 10],
        room,
    )


@decides("yu2009-claim4.6.3")
def _fair_windows(entry: Entry) -> Iterator[Check]:
    tables = entry.published.numbers if isinstance(entry.published.numbers, list) else []
    windows = dict(tables[0]["rows"])
    yield relation(
        "1",
        "largest mean window that the thesis prints is not above 600",
        max(windows.values()) <= 600,
        max(windows.values()),
    )
    R = 2 * (4 * 0.050 + 2 * 0.010)
    says = "s of a packet more in congestion avoidance with delayed ACKs: twice the round trip of Fig 4-33"
    yield Check("2", says, math.isclose(2 * R, 0.88), 0.88, 2 * R)
    grown = 32 + 500 / (2 * R)
    says = "window at 500 s of a connection that begins avoidance at 32 packets at once and loses none"
    yield relation("1", says, round(grown) <= 600, round(grown))
    wanted = 5 * windows[400] * PACKET_BITS / R / 1e6
    single = min(1000 * PACKET_BITS / (2 * 0.070) / 1e6, 50.0)
    demand = wanted + single
    crowded, room = [rate for rate in windows if demand > rate], [rate for rate in windows if demand < rate]
    says = f"windows without losses ask {demand:.0f} Mbit/s of each link; rates below that and above"
    yield relation("3", says, {25, 50} <= set(crowded) and 400 in room, f"{crowded} and {room}")


@decides("yu2009-fig4.2")
def _example(entry: Entry) -> Iterator[Check]:
    rows = dict(entry.published.numbers[0]["rows"]) if isinstance(entry.published.numbers, list) else {}
    at_0 = backlog(0.0, [x for x in EXAMPLE if x <= 0])
    yield Check("numbers", "packets queued at t", at_0 == rows["H(t)"], rows["H(t)"], at_0)
    empty = next(x / 100 for x in range(2000) if backlog(x / 100, EXAMPLE) == 0 and x / 100 > 3)
    yield Check("numbers", "when the queue is empty for the first time, after t",
                empty == rows["S(t) - t (queue empty)"], rows["S(t) - t (queue empty)"], empty)  # fmt: skip
    yield relation(
        "1", "packets served until then", len([x for x in EXAMPLE if x < empty]) == rows["S(t) - t (queue empty)"]
    )


@decides("yu2009-fig4.3")
def _gap(entry: Entry) -> Iterator[Check]:
    delta = 9.2  # the example's letter is lost; a packet arrives just then, so that H(t + delta) is 1
    gap = output_gap(0.0, delta, [*EXAMPLE, delta])
    yield relation(
        "1",
        "output gap of two markers around the example's packets, H(t + delta) = 1: delta + 1 - 3",
        math.isclose(gap, delta - 2),
        gap,
    )
    short = [output_gap(0.0, x, EXAMPLE) for x in (1.0, 2.0, 3.0)]
    arrived = [float(sum(0 < a <= x for a in EXAMPLE)) for x in (1.0, 2.0, 3.0)]
    yield relation("2", "up to H(t) = 3 the gap is what arrived between", short == arrived, short)
    idle = output_gap(0.0, 10.0, EXAMPLE)
    yield relation("3", "a gap of 10 holds idle time as well", idle > sum(0 < a <= 10 for a in EXAMPLE), idle)
