# SPDX-License-Identifier: Apache-2.0
"""How a direction of a link becomes queueing disciplines: lines for `tc -batch`, own ones, and the limits they carry."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from network.direction import Buffer, Direction
from network.dualpi2_netlink import dualpi2_qdisc
from network.frames import FULL_FRAME_BYTES
from network.impairments import FourState, GilbertElliott, Queue, Steps
from network.qdisc_netlink import (
    CHILD,
    CHILD_HANDLE,
    OwnQdisc,
    below,
    delack_qdisc,
    pace_qdisc,
    rate_qdisc,
    warp_red_qdisc,
    wire_qdisc,
)
from network.red_netlink import red_qdisc

NETEM_MARGIN = 2
"""netem's limit counts the packets in flight; this many times rate × delay never drops."""
NETEM_MIN_LIMIT = 1000
UNLIMITED_PPS = 2_000_000
"""Packets per second that bound a wire without a rate (24 Gbit/s of full frames)."""
NIC_QUEUE_BYTES = 1 << 30
"""Queue of a direction that has a rate but no buffer of its own: large enough never to drop."""
BURST_BYTES = 2 * FULL_FRAME_BYTES
"""What a bucket holds: with one full frame, a timer that fires late loses tokens and with them rate."""
ORDERING_RATE = "1000gbit"
"""netem keeps packets in order only where it has a rate; this one adds 12 ns to a full frame."""
LARGE_PACKETS = 10_000_000
LEVELS = ("root handle 1:", "parent 1:1 handle 10:", "parent 10:1 handle 20:", "parent 20:1 handle 30:")
RED_BITS = 32
"""The kernel's RED refuses thresholds with too many bits for its fixed-point average (red_check_params)."""


@dataclass(frozen=True)
class Place:
    """What is configured at one interface: own qdiscs first, then lines for tc, then straight ways from one to another."""

    own: tuple[OwnQdisc, ...] = ()
    lines: tuple[str, ...] = ()
    straight: tuple[tuple[str, str], ...] = ()


def wire(source: str, target: str, direction: Direction) -> Place:
    """What carries that which arrives at `source` to `target`, with the direction's delay and loss there."""
    lines = []
    if not direction.straight:
        lines = [
            f"qdisc add dev {source} ingress",
            f"filter add dev {source} ingress matchall action mirred egress redirect dev {target}",
        ]
    own = []
    parent = "root"
    if direction.needs_own_wire:
        limit = netem_limit(direction)
        delay = _without_jitter(direction)
        if delay is None and direction.own_delay:
            delay = Steps((0,), (direction.delay_ns,))
        paced = paced_by_own(direction) or direction.polices
        own_rate = (direction.overhead_ns or direction.without_netem) and not paced
        rate_bps = direction.rate_bps if own_rate else None
        own.append(
            wire_qdisc(
                target,
                limit,
                delay,
                direction.varying_loss,
                direction.bit_errors,
                rate_bps,
                direction.overhead_ns,
                direction.ahead,
            )
        )
        parent = "parent 1:1 handle 10:"
    netem = netem_words(direction)
    if netem:
        lines.append(f"qdisc add dev {target} {parent} netem limit {netem_limit(direction)} {netem}")
    return Place(tuple(own), tuple(lines), ((source, target),) if direction.straight else ())


def _without_jitter(direction: Direction) -> Steps | None:
    """A changing delay less what netem adds so that its jitter stays positive."""
    if direction.varying_delay is None or direction.jitter is None:
        return direction.varying_delay
    return replace(
        direction.varying_delay,
        values=tuple(value + direction.jitter.reach_ns[0] for value in direction.varying_delay.values),
    )


def netem_words(direction: Direction) -> str:
    """The direction's constant delay, jitter, loss and rate as netem has them; empty where there is nothing of it."""
    argv = []
    delay_ns = direction.delay_ns if direction.varying_delay is None and not direction.own_delay else 0
    jitter = direction.jitter
    if jitter is not None and direction.varying_delay is not None:
        delay_ns = -jitter.reach_ns[0]
    if delay_ns or jitter is not None:
        argv.append(f"delay {delay_ns / 1000:.3f}us")
    if jitter is not None:
        argv.append(f"{jitter.spread_ns / 1000:.3f}us")
        if jitter.distribution != "uniform":
            argv.append(f"distribution {jitter.distribution}")
    if direction.loss:
        argv.append(f"loss random {_percent(direction.loss)}")
    if direction.burst_loss is not None:
        argv.append(_burst_words(direction.burst_loss))
    if direction.duplicate:
        argv.append(f"duplicate {_percent(direction.duplicate)}")
    if direction.corrupt:
        argv.append(f"corrupt {_percent(direction.corrupt)}")
    if direction.reorder:
        argv.append(f"reorder {_percent(direction.reorder)}")
    if direction.aggregate_ns:
        slot = f"{direction.aggregate_ns / 1000:.0f}us"
        argv.append(f"slot {slot} {slot}")
    elsewhere = paced_by_own(direction) or direction.polices or direction.overhead_ns or direction.without_netem
    if direction.rate_bps is not None and not elsewhere:
        argv.append(f"rate {direction.rate_bps}bit")
    elif jitter is not None and jitter.keeps_order:
        argv.append(f"rate {ORDERING_RATE}")
    return " ".join(argv)


def _percent(share: float) -> str:
    return f"{share * 100:.10f}%"


def _burst_words(model: GilbertElliott | FourState) -> str:
    if isinstance(model, GilbertElliott):
        shares = (model.p, model.r, 1 - model.h, 1 - model.k)
        return "loss gemodel " + " ".join(map(_percent, shares))
    return "loss state " + " ".join(map(_percent, (model.p13, model.p31, model.p32, model.p23, model.p14)))


def netem_limit(direction: Direction) -> int:
    """Packets that the wire must be able to hold: those in flight, were all of them 64 bytes long, with a margin."""
    pps = UNLIMITED_PPS if direction.rate_bps is None else direction.rate_bps / (64 * 8)
    jitter_ns = direction.jitter.reach_ns[1] if direction.jitter else 0
    longest_ns = direction.delay_ns + direction.overhead_ns + jitter_ns + direction.aggregate_ns
    return max(NETEM_MIN_LIMIT, int(NETEM_MARGIN * pps * longest_ns / 1e9))


def own_pacing(direction: Direction) -> str:
    """Why warp_rate paces the link; empty where tbf does, or where there is no rate.

    tbf looks at its child's next packet before it takes it (peek), and RED learns that its queue is empty only from a packet
    that is asked for in vain: below tbf its average never falls while nothing is sent, and it drops for minutes. dualpi2 is
    configured by rtnetlink as the own ones are, and so needs a parent of their kind.
    """
    if direction.rate_bps is None:
        return ""
    if direction.varying_rate is not None:
        return "a rate that changes"
    if direction.jitter is not None and not direction.jitter.keeps_order:
        return "a rate with jitter that changes the order"
    return f"queue {direction.queue.kind}" if direction.queue.kind in ("red", "dualpi2") else ""


def paced_by_own(direction: Direction) -> bool:
    """Whether warp_rate paces the link."""
    return bool(own_pacing(direction))


def counts_packets(direction: Direction) -> bool:
    """Whether warp_red stands in front of the link."""
    return direction.rate_bps is not None and direction.queue.kind == "red_packets"


def own_work(module: str, direction: Direction) -> str:
    """What a direction needs one of the project's modules for; empty where it does not."""
    if module not in own_modules([direction]):
        return ""
    reasons = {
        "warp_wire": "changing delay or loss, parts of a microsecond of delay, bit errors, or hosts' processing times",
        "warp_red": "queue red_packets",
        "warp_delack": "ACKs of every second packet (ack: second)",
    }
    return reasons.get(module) or own_pacing(direction)


def own_modules(directions: Iterable[Direction]) -> list[str]:
    """The project's kernel modules that links need."""
    all_directions = list(directions)
    needs = {
        "warp_rate": any(paced_by_own(direction) for direction in all_directions),
        "warp_wire": any(direction.needs_own_wire for direction in all_directions),
        "warp_red": any(counts_packets(direction) for direction in all_directions),
        "warp_delack": any(direction.ack_wait_ns is not None for direction in all_directions),
    }
    return [name for name, needed in needs.items() if needed]


def egress(interface: str, direction: Direction) -> Place:
    """What packets wait in at an interface: for the ACK of the next one, and in the paced buffer."""
    place = _paced(interface, direction)
    if direction.ack_wait_ns is None:
        return place
    own = (delack_qdisc(interface, direction.ack_wait_ns), *(below(qdisc) for qdisc in place.own))
    return Place(own, tuple(_below(line) for line in place.lines))


def _below(line: str) -> str:
    """A line of tc's, one level further down."""
    for number, level in enumerate(LEVELS[:-1]):
        if level in line:
            return line.replace(level, LEVELS[number + 1])
    raise ValueError(line)


def _paced(interface: str, direction: Direction) -> Place:
    """The paced buffer on an interface; nothing where the direction has no rate."""
    if direction.rate_bps is None:
        return Place()
    if direction.polices:
        return Place((), tuple(_policer_lines(interface, direction)))
    if direction.ahead:
        fifo = direction.buffer or Buffer(NIC_QUEUE_BYTES, "bytes")
        return Place((pace_qdisc(interface, direction.rate_bps, BURST_BYTES, fifo),))
    own: tuple[OwnQdisc, ...] = ()
    lines = []
    place, inside = "root handle 1:", "parent 1:1 handle 10:"
    if counts_packets(direction):  # in front of the shaper, whose packets it counts
        own = (warp_red_qdisc(interface, direction.queue, direction.rate_bps),)
        place, inside = "parent 1:1 handle 10:", "parent 10:1 handle 20:"
    if paced_by_own(direction):
        pacer = rate_qdisc(interface, direction.varying_rate or Steps((0,), (direction.rate_bps,)))
        own += (replace(pacer, parent=CHILD, handle=CHILD_HANDLE) if own else pacer,)
    else:
        lines.append(
            f"qdisc add dev {interface} {place} tbf rate {direction.rate_bps}bit burst {BURST_BYTES} "
            f"limit {NIC_QUEUE_BYTES}"
        )
    buffer = direction.buffer or (Buffer(NIC_QUEUE_BYTES, "bytes") if own else None)
    if direction.queue.kind == "red":
        own += (red_qdisc(interface, direction.queue, direction.rate_bps, NIC_QUEUE_BYTES),)
        inner = _fifo(direction.buffer or Buffer(NIC_QUEUE_BYTES, "bytes"))
        lines.append(f"qdisc add dev {interface} parent 10:1 handle 20: {inner}")
    elif direction.queue.kind == "dualpi2":
        packets = direction.buffer.size if direction.buffer is not None else LARGE_PACKETS
        own += (dualpi2_qdisc(interface, direction.queue, packets, NIC_QUEUE_BYTES),)
    elif direction.queue.kind not in ("droptail", "red_packets"):
        lines += _managed_lines(interface, direction.queue, direction.buffer)
    elif buffer is not None:
        lines.append(f"qdisc add dev {interface} {inside} {_fifo(buffer)}")
    return Place(own, tuple(lines))


def _policer_lines(interface: str, direction: Direction) -> list[str]:
    """The kernel's policer in front of an interface that takes everything at once: what exceeds rate and bucket is dropped
    without the sender's TCP being told, as in a router, and prio counts it."""
    assert direction.buffer is not None
    police = f"police rate {direction.rate_bps}bit burst {direction.buffer.size} conform-exceed drop/ok"
    return [
        f"qdisc add dev {interface} root handle 1: prio bands 2 priomap {' '.join(['0'] * 16)}",
        f"filter add dev {interface} parent 1: protocol all matchall classid 1:1 action {police}",
    ]


def _fifo(buffer: Buffer) -> str:
    return f"{'pfifo' if buffer.unit == 'packets' else 'bfifo'} limit {buffer.size}"


def _managed_lines(interface: str, queue: Queue, buffer: Buffer | None) -> list[str]:
    """A managed queue as the shaper's child, each with the exact buffer and without marks unless they are asked for."""
    head = f"qdisc add dev {interface} parent 1:1 handle 10: {queue.kind}"
    ecn = "ecn" if queue.ecn else "noecn"
    times = f"{_time('target', queue.target_ns)}{_time('interval', queue.interval_ns)}"
    packets = buffer.size if buffer is not None else LARGE_PACKETS
    if queue.kind == "codel":
        return [f"{head} limit {packets}{times} {ecn}"]
    if queue.kind == "fq_codel":
        # its own bound on memory would drop before the buffer is full
        return [f"{head} limit {packets} memory_limit {NIC_QUEUE_BYTES}{times} {ecn}"]
    if queue.kind == "pie":
        return [f"{head} limit {packets}{times.replace('interval', 'tupdate')} {ecn}"]
    memory = f" memlimit {buffer.size}" if buffer is not None else ""
    rtt = _time("rtt", queue.interval_ns)
    return [f"{head} unlimited besteffort{rtt}{memory}"]


def _time(word: str, ns: int | None) -> str:
    return "" if ns is None else f" {word} {max(1, round(ns / 1000))}us"
