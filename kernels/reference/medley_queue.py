# SPDX-License-Identifier: Apache-2.0
"""Several flows of Medley through one drop-tail queue, packet by packet, by the rules of Ho 2008 s3.2.3 and nothing else of TCP.

Each flow sends what its window allows; a packet takes its flow's way to the queue, waits there, and its ACK comes back one RTT after it was
sent, and what it waited.  A packet that finds the queue full is missed three packets later and its window is cut once a round.

With one flow the growth is -1, -1, 2: the first fall shows one round late.  In whole packets, as ns-2's Vegas counts its backlog, it is so
with several.  By real numbers it is not with three and more.  Others fall as well, so that the backlog is a little smaller already after
one fall, the flow rises by two, and the queue grows until it is full, whatever its size.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kernels.reference.medley import backlog, increment, influence, whole

ARRIVES, ACKED, MISSED, CROSSES = range(4)
SAMPLE_S = 0.1


@dataclass
class _Flow:
    """rtt_s: without the queue and the packet's own time there; way_s: of it, until the queue."""

    rtt_s: float
    way_s: float
    W: float = 2.0
    I: float = 0.0  # noqa: E741 (the paper's symbol)
    R: bool = False
    Delta: float = 0.0
    Gamma: float = 0.0
    d: float = float("inf")
    rtts: list[float] = field(default_factory=list)
    judged: bool = False
    owed: float = 0.0
    sent: int = 0
    under_way: int = 0
    delivered: int = 0
    round_ends: int = 0
    recovers_until: int = 0
    last_arrival_s: float = 0.0
    last_ack_s: float = 0.0

    def end_round(self, counted: Callable[[float], float]) -> None:
        D = sum(self.rtts) / len(self.rtts)
        last, self.Delta = self.Delta, counted(backlog(self.W, D, self.d))
        if self.I > 0 or not self.Gamma:
            self.Gamma = counted(influence(self.W, self.I if self.I > 0 else 2.0, D, self.d))
        if self.judged:
            self.I = increment(self.I, self.Delta, self.Gamma, last, self.R)
        self.judged = True
        window = min(self.W + self.I + self.owed, 2 * self.W)
        self.W = max(2.0, float(int(window)))
        self.owed = window - int(window)

    def lose(self, counted: Callable[[float], float]) -> None:
        if self.rtts:
            self.Delta = counted(backlog(self.W, sum(self.rtts) / len(self.rtts), self.d))
        self.R, self.I, self.owed = self.Delta > self.Gamma, 0.0, 0.0
        self.W = max(2.0, self.W - self.W // 4)
        self.recovers_until = self.sent


@dataclass(frozen=True)
class Cross:
    """Constant-rate traffic beside the flows, of packets like theirs. rate: packets a second"""

    rate: float
    start_s: float
    stop_s: float


@dataclass(frozen=True)
class Shared:
    """queue: packets that wait, ten times a second; windows: the first flow's, likewise; drops; delivered: packets of each flow"""

    queue: tuple[float, ...]
    windows: tuple[float, ...]
    drops: int
    delivered: tuple[int, ...]

    @property
    def queue_mean(self) -> float:
        return sum(self.queue) / len(self.queue)


def shared(
    rtts_s: Sequence[float],
    rate: float,
    buffer: float,
    length_s: float,
    *,
    whole_packets: bool = True,
    cross: Cross | None = None,
    host_s: float = 30e-6,
    seed: int = 1,
) -> Shared:
    """rate: packets a second; buffer: packets; host_s: what a host takes for a packet at most, drawn evenly.

    whole_packets: Delta and Gamma are rounded to whole packets, as the module does
    """
    counted: Callable[[float], float] = whole if whole_packets else float
    draw = random.Random(seed)  # noqa: S311 (hosts' times, no secret)
    flows = [_Flow(rtt, (rtt - min(rtts_s)) / 2) for rtt in rtts_s]
    events: list[tuple[float, int, int, _Flow, int, float]] = []
    count, free_s, drops = 0, 0.0, 0
    queue: list[float] = []
    windows: list[float] = []

    def after(at_s: float, kind: int, flow: _Flow, number: int, sent_s: float) -> None:
        nonlocal count
        count += 1
        heapq.heappush(events, (at_s, count, kind, flow, number, sent_s))

    def send(flow: _Flow, now_s: float) -> None:
        while flow.under_way < int(flow.W):
            flow.last_arrival_s = max(now_s + flow.way_s + draw.random() * host_s, flow.last_arrival_s)
            after(flow.last_arrival_s, ARRIVES, flow, flow.sent, now_s)
            flow.under_way += 1
            flow.sent += 1

    for flow in flows:
        send(flow, 0.0)
    if cross is not None:
        after(cross.start_s, CROSSES, flows[0], 0, 0.0)
    while events and events[0][0] <= length_s:
        now_s, _, kind, flow, number, sent_s = heapq.heappop(events)
        while len(queue) * SAMPLE_S <= now_s:
            queue.append(max(0.0, free_s - len(queue) * SAMPLE_S) * rate)
            windows.append(flows[0].W)
        if kind == CROSSES:
            assert cross is not None
            if (free_s - now_s) * rate > buffer:
                drops += 1
            else:
                free_s = max(free_s, now_s) + 1 / rate
            if now_s + 1 / cross.rate < cross.stop_s:
                after(now_s + 1 / cross.rate, CROSSES, flow, number + 1, now_s)
            continue
        if kind == ARRIVES:
            if (free_s - now_s) * rate > buffer:
                drops += 1
                after(free_s + 3 / rate + flow.rtt_s - flow.way_s, MISSED, flow, number, sent_s)
                continue
            free_s = max(free_s, now_s) + 1 / rate
            flow.last_ack_s = max(free_s + flow.rtt_s - flow.way_s + draw.random() * host_s, flow.last_ack_s)
            after(flow.last_ack_s, ACKED, flow, number, sent_s)
            continue
        flow.under_way -= 1
        recovers = number < flow.recovers_until
        if kind == MISSED:
            if not recovers:
                flow.lose(counted)
        else:
            flow.delivered += 1
            flow.rtts.append(now_s - sent_s)
            flow.d = min(flow.d, flow.rtts[-1])
            if number >= flow.round_ends:
                if not recovers:
                    flow.end_round(counted)
                flow.rtts.clear()
                flow.round_ends = flow.sent
        send(flow, now_s)
    return Shared(tuple(queue), tuple(windows), drops, tuple(flow.delivered for flow in flows))
