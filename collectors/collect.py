# SPDX-License-Identifier: Apache-2.0
"""All raw files of a run → all its records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collectors import applications, connections, queues, records, sockets, tcp_probe, uncaptured, wire
from collectors.errors import Damage
from collectors.samples import as_it_is
from plan.model import Plan


@dataclass(frozen=True)
class Collected:
    """What run.json says of the records.

    damage: where files broke off, whose good beginnings were used
    clocks: those that were corrected
    sources: by flow, which record each quantity comes from
    packets: in each capture of a flow's end, by its interface
    """

    damage: tuple[Damage, ...]
    clocks: list[dict[str, Any]]
    sources: dict[str, dict[str, str]]
    packets: dict[str, int]


def collect(raw: Path, out: Path, plan: Plan, facts: Mapping[str, Any]) -> Collected:
    """Write the records of a run.

    out: an empty folder, made where it is missing, that nobody takes for records before this has ended; facts: guest.json
    Raises CollectError where a raw file is missing or not of the expected format.
    """
    start_ns = int(facts["start_realtime_ns"])
    damage: list[Damage] = []
    out.mkdir(parents=True, exist_ok=True)
    wired = wire.read(raw, plan, start_ns, damage, facts.get("node_clocks"), scratch=out)
    records.write(out, "acks", wired.acks)
    applications.collect(raw, out, plan)
    nodes = [node.name for node in plan.network.nodes]

    def corrected(node: int, time_ns: int) -> int:
        return wired.clocks.correct(nodes[node], time_ns) if node < len(nodes) else time_ns

    when = as_it_is if wired.clocks.is_one else corrected
    unseen = connections.uncaptured(raw, plan, set(wired.flows["flow"]))
    flow_of = {**wired.flow_of, **{unique.endpoints: unique.name for unique in unseen if unique.is_alone}}
    probe = samples = None
    if plan.tcp_probe:
        to_realtime_ns = start_ns - int(facts["start_monotonic_ns"])
        probe = tcp_probe.rows(raw, flow_of, wired.initial_seq, to_realtime_ns, start_ns, damage)
        records.write(out, "sockets", probe)
    if plan.sockets_interval_s is not None:
        samples = sockets.rows(raw / "sockets.bin", flow_of, start_ns, damage, when)
        record = {name: values for name, values in samples.items() if name not in sockets.COUNTERS}
        records.write(out, "tcp_info", record)
    flows, intervals, sources = uncaptured.read(unseen, probe, samples, plan, start_ns)
    captured = uncaptured.completed(wired.flows, wired.sources, probe, samples)
    records.write(out, "flows", uncaptured.joined("flows", captured, flows))
    records.write(out, "intervals", uncaptured.joined("intervals", wired.intervals, intervals))
    sources = {**wired.sources, **sources}
    if plan.queues_interval_s is not None:
        interfaces = {name: node["interfaces"] for name, node in facts["environment"]["nodes"].items()}
        records.write(out, "queues", queues.rows(raw / "queues.bin", nodes, interfaces, start_ns, damage, when))
    return Collected(tuple(damage), wired.clocks.report(), sources, wired.packets)
