# SPDX-License-Identifier: Apache-2.0
"""What decided a run's packets: recorded with it, and held against what the checkout says now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from analysis import results
from hosts.base import Host
from plan.model import Plan
from testbed.runs import PlannedRun, spec_digest


def run_id(run: PlannedRun, plan: Plan, host: Host) -> str:
    """The id of a run on a host as both are now."""
    return run.run_id(host.kind, host.inputs(plan).key)


def recorded(run: PlannedRun, plan: Plan, host: Host) -> dict[str, Any]:
    """The `inputs` of run.json: spec, seed, host, traces, kernel, modules, userland, agent."""
    return {**asdict(run.inputs(host.kind)), **asdict(host.inputs(plan))}


def changed(result: results.Run, run: PlannedRun, plan: Plan, host: Host | None) -> list[str]:
    """Which inputs of a run have changed since it was made, each in a few words.

    host: as it is now; None where its kernel is not built here, and nothing is said of it
    """
    kind = result.host
    then, now = inputs_of(result), asdict(run.inputs(kind))
    differences = [] if then["spec"] == now["spec"] else ["experiment file"]
    traces = then.get("traces")
    if traces is not None:
        differences += [f"trace {name}" for name in _different(traces, now["traces"])]
    if "kernel" not in then:
        differences.append("kernel and modules: not recorded")
    elif host is not None:
        current = host.inputs(plan)
        if then["kernel"] != current.kernel:
            differences.append("kernel")
        differences += [f"module {name}" for name in _different(then.get("modules", {}), current.modules)]
        differences += userland_changes(then.get("userland") or {}, current.userland)
    return differences


def userland_changes(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """What differs between two machines' programs, such as "iperf3 3.12-1 → 3.18-2"; nothing where one is not recorded."""
    if not then or not now:
        return []
    return [f"{name} {then.get(name, 'none')} → {now.get(name, 'none')}" for name in _different(then, now)]


def inputs_of(result: results.Run) -> Mapping[str, Any]:
    """A run's recorded inputs; of a run from before they were recorded, those that its spec still tells."""
    return result.inputs or {"spec": spec_digest(result.spec), "seed": result.seed, "host": result.host}


def newest_of(run: PlannedRun, kind: str, runs: Sequence[results.Run]) -> results.Run | None:
    """Of an experiment's result folders, the one that answers what a run of the file asks, whatever kernel made it.

    Where several do, complete ones come before failed ones and newer before older.
    """
    wanted = run.inputs(kind)
    candidates = [
        result
        for result in runs
        if result.host == kind and result.seed == run.seed and answers(result, wanted.spec, wanted.traces)
    ]
    return max(
        candidates, key=lambda result: (result.complete, result.timing.get("ended", 0), result.run), default=None
    )


def answers(result: results.Run, spec: str, traces: Mapping[str, str]) -> bool:
    """Whether a run was made from a resolved experiment of this digest and these traces."""
    inputs = inputs_of(result)
    return inputs.get("spec") == spec and dict(inputs.get("traces", traces)) == dict(traces)


def _different(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return [name for name in sorted({*then, *now}) if then.get(name) != now.get(name)]
