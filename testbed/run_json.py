# SPDX-License-Identifier: Apache-2.0
"""What run.json says of a run: the run itself, its host, and its network (testbed.picture)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from analysis.results import FORMAT
from hosts.base import Host, Outcome
from plan.model import Plan
from testbed.identity import recorded
from testbed.picture import bottleneck, picture
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


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown"
