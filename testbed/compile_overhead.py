# SPDX-License-Identifier: Apache-2.0
"""What keeps hosts from acting at the same nanosecond: a processing time per packet, and starts that are not quite together.

Without them flows fall into step with the bottleneck, and who loses a packet is decided by phase (Floyd and Jacobson,
"Traffic phase effects in packet-switched gateways").
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence

from base import quantities
from network.frames import FULL_FRAME_BYTES, IP_TCP_HEADER_BYTES
from network.model import Network, idle_rtt_ns
from network.overhead import with_overhead
from plan import draws
from plan.model import FlowPlan
from schema.model import NO_OVERHEAD, Experiment

ETHERNET_HEADER_BYTES = 14


def with_overheads(network: Network, experiment: Experiment) -> Network:
    """The network whose hosts take the file's time for each packet: those that flows and traffic begin or end at."""
    most_ns = longest_ns(network, experiment)
    if not most_ns:
        return network
    ends = {node for flow in experiment.flows for node in (flow.source, flow.destination)}
    for entry in experiment.traffic:
        ends.update(entry.sources(), entry.destinations())
    return with_overhead(network, sorted(ends), most_ns)


def longest_ns(network: Network, experiment: Experiment) -> int:
    """The longest time that a host takes for a packet; `auto` is what one full packet takes at the bottleneck."""
    text = experiment.hosts.overhead
    if text is None or text == NO_OVERHEAD:
        return 0
    if text != "auto":
        return quantities.delay_ns(text)
    rate_bps = _bottleneck_bps(network)
    if rate_bps is None:
        return 0
    mss, header = experiment.hosts.mss, IP_TCP_HEADER_BYTES + ETHERNET_HEADER_BYTES
    frame = FULL_FRAME_BYTES if mss is None else min(FULL_FRAME_BYTES, mss + header)
    return frame * 8 * 10**9 // rate_bps


def _bottleneck_bps(network: Network) -> int | None:
    """Rate of the queue that the experiment is about, else of the slowest link; the highest of one that changes."""
    if network.bottleneck is not None:
        for link in network.links:
            for a, b, direction in ((link.a, link.b, link.forward), (link.b, link.a, link.backward)):
                if (a, b) == (network.bottleneck.node, network.bottleneck.peer) and direction.rate_bps:
                    return direction.rate_bps
    return min((direction.rate_bps for direction in network.directions() if direction.rate_bps), default=None)


def are_together(experiment: Experiment) -> bool:
    """Whether flows would start at the same nanosecond and may be moved."""
    return bool(_movable(experiment)) and experiment.hosts.overhead not in (None, NO_OVERHEAD)


def apart(flows: Sequence[FlowPlan], experiment: Experiment, network: Network, seed: int) -> tuple[FlowPlan, ...]:
    """The file's flows, of which those that start together do so within one base RTT, the shortest of theirs, drawn evenly.

    A flow that is moved lasts as long as before.
    """
    if not are_together(experiment):
        return tuple(flows)
    movable = _movable(experiment)
    shortest: dict[float, int] = {}
    for number in movable:
        flow = flows[number]
        rtt_ns = idle_rtt_ns(network, flow.source, flow.destination, FULL_FRAME_BYTES)
        shortest[flow.start_s] = min(rtt_ns, shortest.get(flow.start_s, rtt_ns))
    moved = list(flows)
    for number in movable:
        flow = flows[number]
        share = draws.stream(draws.seed_of(seed, "start", flow.name)).random()
        start_s = flow.start_s + round(share * shortest[flow.start_s]) / 1e9
        moved[number] = dataclasses.replace(flow, start_s=start_s)
    return tuple(moved)


def _movable(experiment: Experiment) -> list[int]:
    """Numbers of the flows that start when another one does; those with `exactly`, or whose start `starts` draws, stay."""
    drawn: set[str] = set()
    names = [flow.name or f"f{i + 1}" for i, flow in enumerate(experiment.flows)]
    for rule in experiment.starts:
        drawn.update({"flows": names, "all": names, "traffic": []}.get(str(rule.of), rule.of))
    starts = [quantities.delay_ns(flow.start) for flow in experiment.flows]
    together = Counter(starts)
    return [
        i
        for i, flow in enumerate(experiment.flows)
        if together[starts[i]] > 1 and not flow.exactly and names[i] not in drawn
    ]
