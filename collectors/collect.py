# SPDX-License-Identifier: Apache-2.0
"""All raw files of a run → all its records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collectors import applications, queues, records, sockets, tcp_probe, timeline, wire
from collectors.errors import Damage
from network.model import address_plan
from plan.model import Plan


@dataclass(frozen=True)
class Collected:
    """Where files broke off, whose good beginnings were used, and the clocks that were corrected (run.json's `clocks`)."""

    damage: tuple[Damage, ...]
    clocks: list[dict[str, Any]]


def collect(raw: Path, out: Path, plan: Plan, facts: Mapping[str, Any]) -> Collected:
    """Write the records of a run.

    facts: guest.json. Raises CollectError where a raw file is missing or not of the expected format.
    """
    start_ns = int(facts["start_realtime_ns"])
    damage: list[Damage] = []
    found = wire.read(raw, plan, start_ns, damage, facts.get("node_clocks"))
    records.write(out, "flows", found.flows)
    records.write(out, "intervals", found.intervals)
    records.write(out, "acks", found.acks)
    applications.collect(raw, out, plan)
    nodes = [node.name for node in plan.network.nodes]

    def when(node: int, time_ns: int) -> int:
        return found.clocks.correct(nodes[node], time_ns) if node < len(nodes) else time_ns

    if plan.tcp_probe:
        to_realtime_ns = start_ns - int(facts["start_monotonic_ns"])
        rows = tcp_probe.rows(raw, found.flow_of, found.initial_seq, to_realtime_ns, start_ns, damage)
        records.write(out, "sockets", rows)
    if plan.sockets_interval_s is not None:
        records.write(out, "tcp_info", sockets.rows(raw / "sockets.bin", found.flow_of, start_ns, damage, when))
    if plan.queues_interval_s is not None:
        interfaces = {name: node["interfaces"] for name, node in facts["environment"]["nodes"].items()}
        records.write(out, "queues", queues.rows(raw / "queues.bin", nodes, interfaces, start_ns, damage, when))
    timeline.write(out, _bottleneck(plan))
    return Collected(tuple(damage), found.clocks.report())


def _bottleneck(plan: Plan) -> timeline.QueuePlace | None:
    place = plan.network.bottleneck
    if place is None:
        return None
    interfaces = address_plan(plan.network)[place.node].interfaces
    return timeline.QueuePlace(place.node, next(i.name for i in interfaces if i.peer == place.peer))
