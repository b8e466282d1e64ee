# SPDX-License-Identifier: Apache-2.0
"""What run.json says of a run: the run itself, its host, the network's picture and the bottleneck's place."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from analysis.results import FORMAT
from hosts.base import Host, Outcome
from network.describe import notes
from network.frames import FULL_FRAME_BYTES
from network.model import Network, address_plan
from plan.model import Plan
from testbed.identity import recorded
from testbed.runs import PlannedRun


def run_json(run: PlannedRun, run_id: str, plan: Plan, host: Host, outcome: Outcome, experiment: str) -> dict[str, Any]:
    """The document of a run that has been executed, before its records are collected."""
    environment = dict(outcome.facts.get("environment", {}))
    environment["build"] = host.facts
    environment["host_cpu"] = _cpu_model()
    environment["topology"] = picture(plan.network, plan.duration_s)
    environment["bottleneck"] = bottleneck(plan)
    facts = {key: value for key, value in outcome.facts.items() if key not in ("environment", "error", "ok")}
    return {
        "format": FORMAT,
        "experiment": experiment,
        "run": run_id,
        "seed": run.seed,
        "params": run.params,
        "host": host.kind,
        "status": "complete",
        "error": None,
        "verdict": None,
        "metrics": {},
        "spec": run.spec(),
        "inputs": recorded(run, plan, host),
        "environment": environment,
        "facts": facts,
        "timing": {"virtual_s": plan.duration_s, "wall_s": round(outcome.wall_s, 3), "ended": int(time.time())},
    }


def picture(network: Network, duration_s: float) -> dict[str, Any]:
    """Nodes and links for the report's picture; a loss that changes counts with its mean over the run."""
    return {
        "nodes": [{"name": node.name, "kind": node.kind} for node in network.nodes],
        "links": [
            {
                "a": link.a,
                "b": link.b,
                "rate_bps": link.forward.rate_bps,
                "delay_s": link.forward.delay_ns / 1e9,
                "buffer": None
                if link.forward.buffer is None
                else f"{link.forward.buffer.size} {link.forward.buffer.unit}",
                "loss": link.forward.mean_loss(FULL_FRAME_BYTES, 0, int(duration_s * 1e9)),
                "notes": " · ".join(notes(link)),
            }
            for link in network.links
        ],
    }


def bottleneck(plan: Plan) -> dict[str, Any] | None:
    """Node, interface and (mean) rate of the queue that the experiment is about."""
    place = plan.network.bottleneck
    if place is None:
        return None
    interface = next(i for i in address_plan(plan.network)[place.node].interfaces if i.peer == place.peer)
    rate_bps = interface.egress.mean_rate_bps(0, int(plan.duration_s * 1e9))
    return {"node": place.node, "interface": interface.name, "rate_bps": rate_bps}


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown"
