# SPDX-License-Identifier: Apache-2.0
"""Fidelity rules that can be decided before anything runs. Numbers in brackets are those of docs/fidelity.md."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from network.direction import Direction
from network.frames import FULL_FRAME_BYTES, SYN_BYTES
from network.model import Network, idle_rtt_ns, path
from network.tc import netem_limit
from plan.model import Plan

INITIAL_RTO_S = 1.0
"""Linux' first timeout, before there is an RTT (TCP_TIMEOUT_INIT; RFC 6298 s2)."""


@dataclass(frozen=True)
class Finding:
    """severity: "error" (the result would be wrong) or "warning" (the reader must know)."""

    rule: str
    severity: str
    message: str


def lint(plan: Plan) -> list[Finding]:
    """All findings of all rules, errors first."""
    findings = [finding for rule in RULES for finding in rule(plan)]
    return sorted(findings, key=lambda finding: finding.severity != "error")


def _directions(plan: Plan) -> Iterator[tuple[str, Direction]]:
    for link in plan.network.links:
        yield f"{link.a}→{link.b}", link.forward
        yield f"{link.b}→{link.a}", link.backward


def _slowest(network: Network, source: str, destination: str) -> tuple[int, str, str, Direction] | None:
    """Rate and place of the first of the path's slowest links, one with a buffer where there is one; None where none has a rate."""

    def found() -> tuple[int, str, str, Direction] | None:
        limited = [(d.rate_bps, a, b, d) for a, b, d in path(network, source, destination) if d.rate_bps]
        return min(limited, key=lambda item: (item[0], item[3].buffer is None), default=None)

    return network.once(("slowest", source, destination), found)


def _in_flight_limit(plan: Plan) -> Iterator[Finding]:
    """[3] netem counts the packets in flight."""
    for name, direction in _directions(plan):
        if direction.rate_bps is None or not direction.delay_ns:
            continue
        needed = direction.rate_bps * direction.delay_ns / 1e9 / 8 / FULL_FRAME_BYTES
        if netem_limit(direction) < needed:
            yield Finding(
                "netem-limit", "error", f"{name}: {needed:.0f} packets in flight, netem holds {netem_limit(direction)}"
            )


def _bottleneck_buffer(plan: Plan) -> Iterator[Finding]:
    """[4] A buffer far from the BDP is a choice that readers must see."""
    for flow in plan.flows:
        slowest = _slowest(plan.network, flow.source, flow.destination)
        if slowest is None:
            yield Finding(
                "no-rate", "warning", f"flow {flow.name}: no link of its path has a rate; nothing queues anywhere"
            )
            continue
        rate, a, b, direction = slowest
        if direction.buffer is None:
            yield Finding(
                "no-buffer", "error", f"{a}→{b} is the slowest link of flow {flow.name} and has no buffer size"
            )
            continue
        bdp = rate * idle_rtt_ns(plan.network, flow.source, flow.destination, FULL_FRAME_BYTES) / 8e9 / FULL_FRAME_BYTES
        share = direction.buffer.packets(FULL_FRAME_BYTES) / max(bdp, 1)
        if share < 0.01 or share > 100:
            yield Finding(
                "buffer-bdp", "warning", f"{a}→{b}: the buffer is {share:.3g} times the BDP of flow {flow.name}"
            )


def _socket_buffers(plan: Plan) -> Iterator[Finding]:
    """[5] Socket buffers below twice the BDP limit the flow instead of its algorithm."""
    for flow in plan.flows:
        slowest = _slowest(plan.network, flow.source, flow.destination)
        if slowest is None:
            continue
        bdp = slowest[0] * idle_rtt_ns(plan.network, flow.source, flow.destination, FULL_FRAME_BYTES) / 8e9
        for host, sysctl in ((flow.source, "net.ipv4.tcp_wmem"), (flow.destination, "net.ipv4.tcp_rmem")):
            largest = int(plan.hosts[host].sysctls[sysctl].split()[-1])
            if largest < 2 * bdp:
                yield Finding(
                    "socket-buffer",
                    "warning",
                    f"{host}: {sysctl} allows {largest} bytes, flow {flow.name} needs {2 * bdp:.0f}",
                )


def _snap_length(plan: Plan) -> Iterator[Finding]:
    """[1] Offloads are off on every interface; a capture that cuts headers loses what the collectors need."""
    for capture in plan.captures:
        if 0 < capture.snap_bytes < 94:
            yield Finding(
                "snap",
                "error",
                f"capture {capture.node}>{capture.peer}: {capture.snap_bytes} bytes cut TCP options; at least 94B",
            )


def _sender_queue(plan: Plan) -> Iterator[Finding]:
    """[2] Delay and loss have places of their own; loss on the first hop is still told apart from a sender's drop.

    A first link with a rate and a buffer is part of the topology, as a slow network card is, where a later link can get more
    than it carries from the senders' own links together; where none can, the sender's interface is the bottleneck.
    """
    paths = {(f.source, f.destination): path(plan.network, f.source, f.destination) for f in plan.flows}
    arriving = _arriving_bps(paths.values())
    for flow in plan.flows:
        (_, _, first), *later = paths[flow.source, flow.destination]
        if first.rate_bps is None or first.buffer is None:
            continue
        if not any(
            d.rate_bps is not None and d.buffer is not None and arriving[a, b] > d.rate_bps for a, b, d in later
        ):
            yield Finding(
                "sender-queue",
                "warning",
                f"flow {flow.name}: its bottleneck is the sender's own interface, where TCP is told of drops; "
                "put it behind a router",
            )


def _scalable_without_marks(plan: Plan) -> Iterator[Finding]:
    """[13] DCTCP counts marks; without any it is Reno."""
    for flow in plan.flows:
        if flow.cca != "dctcp":
            continue
        marking = [d for _, _, d in path(plan.network, flow.source, flow.destination) if d.queue.ecn]
        if not marking:
            yield Finding(
                "dctcp-marks",
                "warning",
                f"flow {flow.name}: no queue on the way of dctcp marks, so it behaves as reno; write a queue with ecn, such as "
                "`red_packets min=20p max=21p p=50% weight=0.5 ecn` or `dualpi2 any ecn`",
            )


def _small_bucket(plan: Plan) -> Iterator[Finding]:
    """[14] A bucket of less than two full packets drops every second of two that come together."""
    for name, direction in _directions(plan):
        if direction.polices and direction.buffer is not None and direction.buffer.size < 2 * FULL_FRAME_BYTES:
            yield Finding(
                "small-bucket",
                "warning",
                f"{name}: the policer's bucket of {direction.buffer.size} bytes holds less than two full packets; "
                f"write a buffer of at least {2 * FULL_FRAME_BYTES}B",
            )


def _first_rtt(plan: Plan) -> Iterator[Finding]:
    """[15] An answer that comes after the SYN was sent again is no sample of the RTT, unless time stamps tell which SYN it answers."""
    seen: set[tuple[str, str]] = set()
    for flow in plan.flows:
        ends = flow.source, flow.destination
        stamped = all(plan.hosts[end].sysctls.get("net.ipv4.tcp_timestamps", "1") != "0" for end in ends)
        if stamped or ends in seen:
            continue
        seen.add(ends)
        rtt_s = idle_rtt_ns(plan.network, *ends, SYN_BYTES) / 1e9
        if rtt_s >= INITIAL_RTO_S:
            yield Finding(
                "first-rtt",
                "warning",
                f"flow {flow.name}: the answer to its SYN comes after {rtt_s:.2f} s, and Linux sends it again after "
                f"{INITIAL_RTO_S:g} s; without time stamps the connection then begins without an RTT, and a first window that "
                "is computed from it falls away; leave net.ipv4.tcp_timestamps on, or shorten the path",
            )


def _arriving_bps(paths: Iterable[list[tuple[str, str, Direction]]]) -> dict[tuple[str, str], float]:
    """The most that the first links of these paths let onto each later one, bit/s; infinite where one has no rate."""
    firsts: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    for (source, peer, first), *later in paths:
        rate = math.inf if first.rate_bps is None else float(first.rate_bps)
        for a, b, _ in later:
            firsts.setdefault((a, b), {})[source, peer] = rate
    return {link: sum(rates.values()) for link, rates in firsts.items()}


def phase_effects(plan: Plan) -> Iterator[Finding]:
    """[12] Flows that share a drop-tail queue fall into step with it where nothing moves their packets (virtual time only)."""
    directions: dict[tuple[str, str], Direction] = {}
    ways: dict[tuple[str, str], list[str]] = {}
    for flow in plan.flows:
        if _is_moved(plan.network, flow.source, flow.destination):
            continue
        for a, b, direction in path(plan.network, flow.source, flow.destination):
            directions[a, b] = direction
            ways.setdefault((a, b), []).extend([flow.name] * flow.parallel)
    for (a, b), names in ways.items():
        direction = directions[a, b]
        if len(names) > 1 and direction.buffer is not None and direction.queue.kind == "droptail":
            shown = ", ".join(dict.fromkeys(names[:3])) + (" …" if len(names) > 3 else "")
            yield Finding(
                "phase-effects",
                "warning",
                f"{a}→{b}: {len(names)} connections ({shown}) share a drop-tail queue and nothing moves their packets: who "
                "loses one is decided by phase, and shares jump with the RTT; write hosts: {overhead: auto}, or leave it out",
            )


def _is_moved(network: Network, source: str, destination: str) -> bool:
    """Whether a link moves packets of a flow between two nodes, or their ACKs."""
    return network.once(
        ("moved", *sorted((source, destination))),
        lambda: any(
            _moves_packets(direction)
            for _, _, direction in path(network, source, destination) + path(network, destination, source)
        ),
    )


def _moves_packets(direction: Direction) -> bool:
    """Whether something random or changing keeps the packets of a link out of step."""
    random_loss = direction.loses or direction.reorder or direction.duplicate
    return bool(direction.overhead_ns or direction.jitter or random_loss or direction.varying_rate)


RULES: tuple[Callable[[Plan], Iterator[Finding]], ...] = (
    _in_flight_limit,
    _bottleneck_buffer,
    _socket_buffers,
    _snap_length,
    _sender_queue,
    _scalable_without_marks,
    _small_bucket,
    _first_rtt,
)
