# SPDX-License-Identifier: Apache-2.0
"""What keeps hosts from acting at the same nanosecond: a processing time per packet, and starts that are not quite together.

Without them flows fall into step with the bottleneck, and who loses a packet is decided by phase (Floyd and Jacobson,
"Traffic phase effects in packet-switched gateways").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from base import quantities
from network.frames import FULL_FRAME_BYTES, IP_TCP_HEADER_BYTES, LONGER_IN_IPV6_BYTES
from network.model import Network, idle_rtt_ns
from network.overhead import with_overhead
from plan import draws
from schema.model import AUTO_OVERHEAD, NO_OVERHEAD, Experiment, Flow
from schema.traffic.entry import TcpEntry
from testbed.compile_context import Window

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
    if text != AUTO_OVERHEAD:
        return quantities.delay_ns(text)
    rate_bps = _bottleneck_bps(network)
    if rate_bps is None:
        return 0
    mss, header = experiment.hosts.mss, IP_TCP_HEADER_BYTES + ETHERNET_HEADER_BYTES
    header += LONGER_IN_IPV6_BYTES if experiment.ip == 6 else 0
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
    return experiment.hosts.overhead not in (None, NO_OVERHEAD) and bool(_movable(experiment))


def apart(when: Mapping[str, Window], experiment: Experiment, network: Network, seed: int) -> Mapping[str, Window]:
    """When flows and traffic are active: those that would start together do so within one base RTT, the shortest of theirs, drawn evenly.

    A flow that is moved lasts as long as before; traffic ends when it would have.
    """
    if not are_together(experiment):
        return when
    movable = _movable(experiment)
    shortest: dict[float, int] = {}
    for name, entry in movable.items():
        start_s = when[name].start_s
        rtt_ns = min(idle_rtt_ns(network, a, b, FULL_FRAME_BYTES) for a, b in _ways(entry))
        shortest[start_s] = min(rtt_ns, shortest.get(start_s, rtt_ns))
    moved = dict(when)
    for name, entry in movable.items():
        window = when[name]
        share = draws.stream(draws.seed_of(seed, "start", name)).random()
        later_s = round(share * shortest[window.start_s]) / 1e9
        stop_s = window.stop_s + later_s if isinstance(entry, Flow) else window.stop_s
        if window.start_s + later_s < stop_s:
            moved[name] = Window(window.start_s + later_s, stop_s)
    return moved


def _ways(entry: Flow | TcpEntry) -> list[tuple[str, str]]:
    if isinstance(entry, Flow):
        return [(entry.source, entry.destination)]
    return [(source, destination) for source in entry.sources() for destination in entry.destinations()]


def _movable(experiment: Experiment) -> dict[str, Flow | TcpEntry]:
    """Flows, and traffic over TCP, that start when another one does; those with `exactly`, or whose start `starts` draws, stay."""
    names = [flow.name or f"f{i + 1}" for i, flow in enumerate(experiment.flows)]
    others = [entry.name or f"t{i + 1}" for i, entry in enumerate(experiment.traffic)]
    drawn: set[str] = set()
    for rule in experiment.starts:
        drawn.update({"flows": names, "traffic": others, "all": [*names, *others]}.get(str(rule.of), rule.of))
    entries = dict(zip([*names, *others], [*experiment.flows, *experiment.traffic], strict=True))
    over_tcp = {name: entry for name, entry in entries.items() if isinstance(entry, Flow | TcpEntry)}
    together = Counter(quantities.delay_ns(entry.start) for entry in over_tcp.values())
    return {
        name: entry
        for name, entry in over_tcp.items()
        if together[quantities.delay_ns(entry.start)] > 1 and not entry.exactly and name not in drawn
    }
