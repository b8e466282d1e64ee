# SPDX-License-Identifier: Apache-2.0
"""Measure every direction of every link as it was built, on its own hop, before anything else uses the network.

What is measured is only written down here; `analysis.calibration` holds it against what was asked for. Quantities that a
direction cannot show have a reason instead of a number, under "not".
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from typing import Any

from agent.hop import MARGIN_NS, SMALL_FRAME_BYTES, Ends, Hop
from agent.namespaces import entered, read_offloads
from agent.network import WIRES, BuiltNetwork, echo_rtt_ns
from agent.traffic import clock
from base.linux import exact_timers
from network.direction import Direction
from network.frames import FULL_FRAME_BYTES
from network.impairments import CHANCE_BYTES, RateTrace
from network.model import path
from network.tc import paced_by_own
from plan.model import Plan

ECHOES = 3
EXTRA_PACKETS = 32
"""Packets beyond what buffer and token bucket take: a bucket that takes more shows up to that many."""
MOST_PACKETS = {"run": 4_000, "only": 400_000}
LONGEST_FILL_S = {"run": 2.0, "only": 600.0}
"""Filling a buffer in real time takes its time; before a run it must not take long."""
FILL_BATCH = 64
LOSS_PACKETS = {"run": 2_000, "only": 20_000}
MOST_LINKS = {"run": 64, "only": 100_000}
POLICE_PACKETS, POLICE_TIMES = 5_000, 4
"""Packets with which a policer's rate is measured, and how many times as fast they come."""
RATE_STRETCH_S = 0.3
OVERLOAD = 1.5
TIMER_NS = 1_000_000
TIMERS = 200


def calibrate(network: BuiltNetwork, plan: Plan, mode: str) -> dict[str, Any]:
    """All links ("only"), or those that the run's traffic crosses ("run", with fewer packets)."""
    exact_timers()
    wanted = range(len(plan.network.links)) if mode == "only" else sorted(crossed(plan))
    rows: list[dict[str, Any]] = []
    left_out = len(wanted) - MOST_LINKS[mode]
    for number in list(wanted)[: MOST_LINKS[mode]]:
        rows += [measure_direction(ends, plan, mode) for ends in _ends(network, plan, number)]
    return {
        "mode": mode,
        "realtime": plan.realtime,
        "directions": rows,
        "left_out": max(0, left_out),
        "timer_late_ns": timer_lateness_ns(),
    }


def crossed(plan: Plan) -> set[int]:
    """Numbers of the links that flows and traffic cross."""
    numbers = {frozenset((link.a, link.b)): i for i, link in reversed(list(enumerate(plan.network.links)))}
    pairs = {(flow.source, flow.destination) for flow in plan.flows}
    for traffic in plan.traffic:
        for other in _targets(traffic.settings):
            pairs.add((traffic.node, other))
    hops = ((a, b) for source, destination in pairs for a, b, _ in path(plan.network, source, destination))
    return {numbers[frozenset(hop)] for hop in hops}


def _targets(settings: dict[str, Any]) -> Iterable[str]:
    if "to" in settings:
        yield settings["to"]
    for transfer in settings.get("transfers", []):
        yield transfer["to"]


def timer_lateness_ns(timers: int = TIMERS) -> list[int]:
    """How late timers of a millisecond wake this process, sorted: what pacing and delay on this host are worth."""
    late, due = [], time.monotonic_ns()
    for _ in range(timers):
        due = max(due, time.monotonic_ns()) + TIMER_NS
        clock.sleep_until_ns(due)
        late.append(time.monotonic_ns() - due)
    return sorted(late)


def _ends(network: BuiltNetwork, plan: Plan, number: int) -> list[Ends]:
    """Both directions of a link."""
    link = plan.network.links[number]
    pids = network.pids()
    place = _places(plan, number)
    a, b = network.plans[link.a].interfaces[place[0]], network.plans[link.b].interfaces[place[1]]
    ends = []
    for here, there, direction, letter in ((a, b, link.forward, "b"), (b, a, link.backward, "a")):
        pair = (here.node, there.node, pids[here.node], pids[there.node])
        addresses = (here.name, here.address, there.address)
        ends.append(Ends(*pair, *addresses, direction, pids.get(WIRES), f"w{number}{letter}"))
    return ends


def _places(plan: Plan, number: int) -> tuple[int, int]:
    """Which interface of each of its nodes a link has: nodes number theirs in the order of the links."""
    before = plan.network.links[:number]
    link = plan.network.links[number]
    return tuple(sum((o.a == n) + (o.b == n) for o in before) for n in (link.a, link.b))  # type: ignore[return-value]


def measure_direction(ends: Ends, plan: Plan, mode: str) -> dict[str, Any]:
    row: dict[str, Any] = {"from": ends.a, "to": ends.b, "interface": ends.a_interface, "not": {}}
    row["offloads_on"] = _offloads(ends)
    hop = Hop(ends, plan.realtime)
    try:
        row["rtt_ns"] = min(echo_rtt_ns(ends.a_pid, ends.b_address) for _ in range(ECHOES))
        row["held_packets"] = _held(hop)
        drops = hop.wire_drops()
        _rate_and_buffer(hop, row, mode)
        _in_flight(hop, row, mode)
        row["wire_drops"] = hop.wire_drops() - drops
        _loss(hop, row, mode)
    finally:
        hop.close()
    return row


def _offloads(ends: Ends) -> list[str]:
    """Offloads that are on, at the sender's interface and on the wire."""
    active = []
    for pid, name in ((ends.a_pid, ends.a_interface), (ends.wire_pid, ends.wire)):
        if pid is None:
            continue
        with entered(pid):
            try:
                active += [f"{name} {what}" for what, on in read_offloads([name])[name].items() if on]
            except OSError:
                continue  # no wire: a plain pair of interfaces
    return active


def _pause(direction: Direction) -> None:
    """Let the bucket fill and the wire run empty."""
    time.sleep(
        (direction.delay_ns + direction.aggregate_ns + MARGIN_NS + 10 * direction.serialisation_ns(FULL_FRAME_BYTES))
        / 1e9
    )


def _held(hop: Hop) -> int:
    """Packets that wait on the sender's interface right after a single one was sent into the empty link: none, where
    nothing but the queue in front of the rate is there."""
    _pause(hop.ends.direction)
    hop.send(1, SMALL_FRAME_BYTES)
    if paced_by_own(hop.ends.direction):
        time.sleep(_own_hold_ns(hop.ends.direction) / 1e9)
    packets = hop.held()[0]
    _settle(hop, 1, SMALL_FRAME_BYTES)
    return packets


def _own_hold_ns(direction: Direction) -> int:
    """How long warp_rate keeps a small packet that finds the link empty: until it is sent."""
    if isinstance(direction.varying_rate, RateTrace):
        return (1 + SMALL_FRAME_BYTES // CHANCE_BYTES) * direction.varying_rate.longest_gap_ms * 10**6
    return direction.serialisation_ns(SMALL_FRAME_BYTES) + 1


def _settle(hop: Hop, packets: int, frame_bytes: int) -> dict[int, int]:
    """Receive what is under way."""
    direction = hop.ends.direction
    longest = (
        direction.delay_ns
        + direction.aggregate_ns
        + (packets + 4) * direction.serialisation_ns(frame_bytes)
        + 4 * MARGIN_NS
    )
    return hop.receive(packets, longest)


def _rate_and_buffer(hop: Hop, row: dict[str, Any], mode: str) -> None:
    direction = hop.ends.direction
    if direction.rate_bps is None:
        row["not"].update(rate="the link has none", buffer="the link has none", burst="the link has none")
        return
    if direction.polices:
        _police(hop, row)
        return
    if reason := _untimed(direction):
        row["not"].update(rate=reason, buffer=reason, burst=reason)
        return
    if direction.buffer is None:
        row["not"]["buffer"] = "the queue has no limit"
        capacity = EXTRA_PACKETS
    else:
        capacity = math.floor(direction.buffer.packets(FULL_FRAME_BYTES))
    if (
        capacity > MOST_PACKETS[mode]
        or capacity * direction.serialisation_ns(FULL_FRAME_BYTES) > LONGEST_FILL_S[mode] * 1e9
    ):
        remark = f"{capacity} packets are too many before a run; ./warpbed calibrate fills it"
        row["not"]["buffer"] = remark
        capacity = EXTRA_PACKETS
    _pause(direction)
    if hop.realtime:
        _overload(hop, row)
        row["not"]["burst"] = "in real time the sender is not fast enough to tell it from the buffer"
        if "buffer" not in row["not"]:
            _fill(hop, row, capacity)
        return
    _burst(hop, row, capacity)


def _police(hop: Hop, row: dict[str, Any]) -> None:
    """What a full token bucket lets through at once; then more than the rate, of which the rate passes."""
    direction = hop.ends.direction
    assert direction.rate_bps is not None and direction.buffer is not None
    row["not"]["buffer"] = "a policer holds no packets; its bucket is the burst"
    if hop.realtime:
        row["not"].update(rate="a policer is measured in virtual time", burst="a policer is measured in virtual time")
        return
    frame_ns = FULL_FRAME_BYTES * 8 * 10**9 // direction.rate_bps
    bucket = direction.buffer.size // FULL_FRAME_BYTES
    time.sleep((bucket + 2) * frame_ns / 1e9)
    hop.send(bucket + EXTRA_PACKETS)
    row["burst_packets"] = len(_settle(hop, bucket + EXTRA_PACKETS, FULL_FRAME_BYTES))
    start_ns = time.monotonic_ns()
    for index in range(POLICE_PACKETS):
        clock.sleep_until_ns(start_ns + index * frame_ns // POLICE_TIMES)
        hop.send(1)
    arrived = sorted(_settle(hop, POLICE_PACKETS, FULL_FRAME_BYTES).values())
    # the bucket has filled up while the burst was waited for: what conforms comes after it
    timed = arrived[bucket + EXTRA_PACKETS :]
    if len(timed) < 2:
        row["not"]["rate"] = "too few packets arrived to time them"
        return
    row["rate_bps"] = (len(timed) - 1) * FULL_FRAME_BYTES * 8e9 / (timed[-1] - timed[0])
    row["rate_packets"] = len(timed) - 1


def _untimed(direction: Direction) -> str:
    """Why a burst says nothing about a link's rate and buffer; empty where it does."""
    if direction.varying_rate is not None:
        return "it changes; the run's own queue is held against its schedule"
    if direction.queue.kind != "droptail":
        return f"{direction.queue.kind} drops by itself before the buffer is full"
    if direction.jitter is not None or direction.reorder or direction.duplicate or direction.aggregate_ns:
        return "packets do not arrive as they left; the run's own queue is held against it"
    return ""


def _burst(hop: Hop, row: dict[str, Any], capacity: int) -> None:
    """In virtual time: packets without any time between them. Those that the bucket lets through and those that the buffer
    holds are the ones that arrive, one after the other at the rate."""
    count = capacity + EXTRA_PACKETS if "buffer" not in row["not"] else capacity
    before = hop.held()[2]
    hop.send(count)
    packets, size, drops = hop.held()
    arrived = _settle(hop, count, FULL_FRAME_BYTES)
    numbers = sorted(arrived)
    if "buffer" not in row["not"]:
        row["buffer_packets"], row["buffer_bytes"] = packets, size
    row["burst_packets"] = count - (drops - before) - packets
    timed = _after_first_loss(numbers)
    if len(timed) > 1:
        time_ns = arrived[timed[-1]] - arrived[timed[0]]
        row["rate_bps"] = (timed[-1] - timed[0]) * FULL_FRAME_BYTES * 8e9 / time_ns if time_ns else math.inf
        row["rate_packets"] = timed[-1] - timed[0]
    else:
        row["not"]["rate"] = "too few packets arrived to time them"


def _after_first_loss(numbers: list[int]) -> list[int]:
    """The packets that a rate is read from. One that is lost takes no time on the wire: those behind it catch up with what
    the bucket let through at once, and from then on they come at the rate."""
    for index in range(1, len(numbers)):
        if numbers[index] != numbers[index - 1] + 1:
            return numbers[index:]
    return numbers


def _overload(hop: Hop, row: dict[str, Any]) -> None:
    """In real time: more than the link can take, for long enough that single timers do not matter."""
    direction = hop.ends.direction
    assert direction.rate_bps is not None
    if direction.loses:
        row["not"]["rate"] = "with loss on the wire it is read from the run's queue"
        return
    _, _, dropped = hop.held()
    frame_ns = FULL_FRAME_BYTES * 8e9 / direction.rate_bps
    count = max(EXTRA_PACKETS, math.ceil(RATE_STRETCH_S * 1e9 * OVERLOAD / frame_ns))
    start_ns = time.monotonic_ns()
    for index in range(0, count, 8):
        clock.sleep_until_ns(start_ns + round(index * frame_ns / OVERLOAD))
        hop.send(8)
    dropped = hop.held()[2] - dropped
    arrived = sorted(_settle(hop, count, FULL_FRAME_BYTES).values())
    if not dropped and len(arrived) * frame_ns > 1.2 * (arrived[-1] - arrived[0]):
        row["not"]["rate"] = "this host cannot send as fast as the link"
        return
    row["rate_bps"] = (len(arrived) - 1) * FULL_FRAME_BYTES * 8e9 / (arrived[-1] - arrived[0])
    row["rate_packets"] = len(arrived) - 1


def _fill(hop: Hop, row: dict[str, Any], capacity: int) -> None:
    """In real time: send until packets are dropped, and look at once how many wait."""
    _, _, before = hop.held()
    for _ in range(3 * capacity // FILL_BATCH + 4):
        hop.send(FILL_BATCH)
        packets, size, drops = hop.held()
        row["buffer_packets"] = max(packets, row.get("buffer_packets", 0))
        row["buffer_bytes"] = max(size, row.get("buffer_bytes", 0))
        if drops > before:
            break
    else:
        row["not"]["buffer"] = "this host cannot send fast enough to fill it"
    _settle(hop, row["buffer_packets"] + 2, FULL_FRAME_BYTES)


def _chunk(direction: Direction, frame_bytes: int) -> int:
    if direction.buffer is None:
        return FILL_BATCH
    return max(1, min(FILL_BATCH, math.floor(direction.buffer.packets(frame_bytes))))


def _in_flight(hop: Hop, row: dict[str, Any], mode: str) -> None:
    """As many packets as fit into the wire: where it holds fewer, it drops."""
    direction = hop.ends.direction
    if direction.rate_bps is None or not direction.delay_ns:
        row["not"]["in_flight"] = "the link has no rate" if direction.rate_bps is None else "the link has no delay"
        return
    if direction.varying_rate is not None or direction.varying_loss is not None:
        row["not"]["in_flight"] = "its rate or loss changes"
        return
    if direction.queue.kind != "droptail":
        row["not"]["in_flight"] = f"{direction.queue.kind} may drop some of them"
        return
    count = math.ceil(1.25 * direction.delay_ns / direction.serialisation_ns(FULL_FRAME_BYTES)) + 4
    if count > MOST_PACKETS[mode]:
        row["not"]["in_flight"] = f"{count} packets are too many before a run; ./warpbed calibrate sends them"
        return
    row["in_flight_sent"], row["in_flight_received"] = _through(hop, count, FULL_FRAME_BYTES)


def _loss(hop: Hop, row: dict[str, Any], mode: str) -> None:
    """Packets that the wire loses, of those that the queue has let through."""
    direction = hop.ends.direction
    share = direction.mean_loss(SMALL_FRAME_BYTES)
    if not share or direction.varying_loss is not None:
        return
    row["loss_sent"], row["loss_received"] = _through(hop, LOSS_PACKETS[mode], SMALL_FRAME_BYTES)
    row["loss_frame_bytes"] = SMALL_FRAME_BYTES


def _through(hop: Hop, count: int, frame_bytes: int) -> tuple[int, int]:
    """Send packets at the link's rate: how many got as far as the wire, and how many arrived. A host in real time that is late
    sends two portions at once, of which the queue in front of the wire drops some: the wire has no part in that."""
    _pause(hop.ends.direction)
    drops = hop.held()[2]
    hop.train(count, frame_bytes, _chunk(hop.ends.direction, frame_bytes))
    arrived = _settle(hop, count, frame_bytes)
    return count - (hop.held()[2] - drops), len(arrived)
