# SPDX-License-Identifier: Apache-2.0
"""Execute a plan on machines that are its nodes: all agents step by step together, then one folder of raw files.

The machines may be virtual or a lab's: what is needed of each is a way to reach it (hosts.remote) and the interfaces
that its cables are plugged into (hosts.nodes.cabling).
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from base.errors import WarpbedError
from hosts.base import Execution, failure
from hosts.nodes.merge import MergeError, Part, merge
from hosts.nodes.station import Clock, Station, StationError
from hosts.remote import Remote, RemoteError, agent_files
from hosts.watch import SILENCE_S
from plan.console import OUT
from plan.model import Cabling, Plan

POLL_S = 0.05
GATE_S = 3 * SILENCE_S
"""For all machines to come to a gate: six emulated ones have been seen to take longer than one SILENCE_S on a busy computer."""
START_IN_S = 1.5
"""Between the word to start and the start: longer than the word takes to reach every machine."""


class CancelledError(WarpbedError):
    """The controller was told to stop."""


def execute(
    run: Execution,
    cablings: Mapping[str, Cabling],
    remotes: Mapping[str, Remote],
    modules: Sequence[Path],
    objects: Mapping[str, Path | bytes] | None = None,
) -> tuple[dict[str, str] | None, dict[str, Any]]:
    """Execute the plan and leave raw files and guest.json in the folder; returns why there is no result (or None), and the
    facts.

    remotes: the machine of each node; objects: further files that the plan needs over there
    """
    folder = run.folder
    stations = [Station(node, remotes[node], folder / f"{node}.log") for node in cablings]
    for station in stations:
        (folder / f"machine-{station.node}").mkdir()
    error: dict[str, str] | None = None
    clocks: dict[str, tuple[Clock, Clock]] = {}
    try:
        _send(run.plan, cablings, stations, {**agent_files(modules), **(objects or {})})
        try:
            clocks = _together(run, stations)
        except StationError as failed:
            last_lines = "\n".join(next((s.errors for s in stations if s.node == failed.node), [])[-8:])
            error = failure("machine", failed.node, last_lines or str(failed))
        finally:
            for station in stations:
                station.stop()
        _fetch(run, stations)
    except CancelledError:
        return failure("run", "machines", "interrupted"), {}
    except RemoteError as failed:
        return error or failure("machine", "ssh", str(failed)), {}
    facts, wrong = _joined(run.plan, stations, clocks, folder)
    return wrong or error, facts


def _send(
    plan: Plan, cablings: Mapping[str, Cabling], stations: Sequence[Station], files: Mapping[str, Path | bytes]
) -> None:
    common = {**files, f"{OUT}/plan.json": plan.to_json().encode()}

    def send(station: Station) -> None:
        station.remote.put({**common, f"{OUT}/cabling.json": cablings[station.node].to_json().encode()})

    with ThreadPoolExecutor(len(stations)) as pool:
        list(pool.map(send, stations))


def _together(run: Execution, stations: Sequence[Station]) -> dict[str, tuple[Clock, Clock]]:
    """Take all agents through their gates; returns each machine's clock before and after the run."""

    def meet(gate: str, limit_s: float = GATE_S) -> None:
        until = time.monotonic() + limit_s
        while len([station for station in stations if station.has_reached(gate)]) < len(stations):
            if run.cancelled():
                raise CancelledError
            if time.monotonic() > until:
                late = next(station for station in stations if not station.has_reached(gate))
                raise StationError(late.node, f"its agent did not come to {gate!r} within {limit_s:.0f} s")
            run.progress(min(station.virtual_s for station in stations))
            time.sleep(POLL_S)

    def go(gate: str) -> None:
        for station in stations:
            station.say("go", gate)

    for station in stations:
        station.start()
    meet("built")
    go("built")
    meet("probed")
    go("probed")
    meet("start")
    before = {station.node: station.clock() for station in stations}
    start_ns = time.time_ns() + int(START_IN_S * 1e9)
    for station in stations:
        station.say("start", str(start_ns + before[station.node].offset_ns))
    meet("ended", run.plan.duration_s + run.plan.grace_s + SILENCE_S)
    after = {station.node: station.clock() for station in stations}
    go("ended")
    meet("done")
    return {node: (before[node], after[node]) for node in before}


def _fetch(run: Execution, stations: Sequence[Station]) -> None:
    def heed() -> None:
        if run.cancelled():
            raise CancelledError

    def fetch(station: Station) -> None:
        station.remote.get(OUT, run.folder / f"machine-{station.node}", heed=heed)

    with ThreadPoolExecutor(len(stations)) as pool:
        list(pool.map(fetch, stations))


def _joined(
    plan: Plan, stations: Sequence[Station], clocks: Mapping[str, tuple[Clock, Clock]], folder: Path
) -> tuple[dict[str, Any], dict[str, str] | None]:
    """One host's facts out of all machines', and the first error that an agent wrote down itself."""
    parts = [
        Part(s.node, folder / f"machine-{s.node}", clocks[s.node][0].offset_ns if s.node in clocks else 0)
        for s in stations
    ]
    for part in parts:
        try:
            own = json.loads((part.folder / "guest.json").read_text()).get("error")
        except (OSError, ValueError):
            continue
        if own:
            return {}, failure(own["stage"], f"{part.node}: {own['subject']}", own["detail"])
    if not clocks:
        return {}, None
    try:
        facts = merge(parts, folder)
    except (MergeError, OSError, KeyError, ValueError) as error:
        return {}, failure("merge", "machines", f"{type(error).__name__}: {error}")
    facts["clocks"] = {
        node: {
            "offset_ns": before.offset_ns,  # by which this machine's times are shifted
            "drift_ns": after.offset_ns - before.offset_ns,
            "uncertainty_ns": max(before.uncertainty_ns, after.uncertainty_ns),
        }
        for node, (before, after) in clocks.items()
    }
    # What that leaves of offset and drift, packets tell where they are captured: at the flows' ends. The first machine's
    # clock counts as the run's.
    ends = {node for flow in plan.flows for node in (flow.source, flow.destination)}
    facts["node_clocks"] = {station.node: station.node for station in stations[1:] if station.node in ends}
    (folder / "guest.json").write_text(json.dumps(facts, indent=1, sort_keys=True))
    for part in parts:
        shutil.rmtree(part.folder)
    return facts, None
