# SPDX-License-Identifier: Apache-2.0
"""From the files of a transfer's two ends to a run folder of the usual form, so that the usual collectors read it."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

from analysis.results import FORMAT
from collectors.errors import CollectError
from network.model import Link, Network, Node, address_plan
from plan.model import Capture, FlowPlan, HostSettings, Plan
from testbed.campaign.model import Campaign
from testbed.campaign.schedule import Transfer

SENDER, RECEIVER, FLOW = "sender", "receiver", "t"
NETWORK = Network((Node(SENDER), Node(RECEIVER)), (Link(SENDER, RECEIVER),))
"""The wide area as the collectors see it: two ends, nothing asked of what lies between them."""
LAST_LOG_BYTES = 1 << 20
"""Of what the processes at an end have printed, which is some lines."""


def plan_of(
    campaign: Campaign, transfer: Transfer, port: int, duration_s: float, interval_s: float, snap_bytes: int
) -> Plan:
    """What the ends were asked to do, in the form of every other run's plan."""
    flow = FlowPlan(FLOW, "file", transfer.cca, SENDER, RECEIVER, port, 0.0, None, transfer.size_bytes)
    return Plan(
        network=NETWORK,
        flows=(flow,),
        duration_s=duration_s,
        grace_s=0.0,
        start_grid_s=0,
        hosts={SENDER: HostSettings(), RECEIVER: HostSettings()},
        captures=(Capture(SENDER, RECEIVER, snap_bytes), Capture(RECEIVER, SENDER, snap_bytes)),
        tcp_probe=False,
        sockets_interval_s=interval_s,
        ends_with_flows=True,
    )


def arrange(
    folder: Path,
    ends: dict[str, Path],
    states: dict[str, dict[str, Any]],
    campaign: Campaign,
    transfer: Transfer,
    port: int,
    circumstances: dict[str, Any],
) -> None:
    """Make `folder` a run folder (raw/ and run.json, not yet collected).

    ends, states: per side ("sender", "receiver") the fetched files, and the final status
    circumstances: clocks, path and attempt, kept with the run
    """
    raw = folder / "raw"
    raw.mkdir()
    interfaces = {name: node.interfaces[0].name for name, node in address_plan(NETWORK).items()}
    for side, files in ends.items():
        captures = sorted(files.glob("*.pcap"))
        if len(captures) != 1:
            raise CollectError(f"{side}: {len(captures)} captures came home, 1 expected")
        (capture,) = captures
        shutil.move(capture, raw / f"{interfaces[side]}.pcap")
        _take(files / f"{side}.json", side, raw / f"{FLOW}.{'client' if side == SENDER else 'server'}.json")
    _take(ends[SENDER] / "sockets.bin", SENDER, raw / "sockets.bin")
    with open(raw / "console.log", "wb") as log:
        for files in ends.values():
            if (files / "console.log").exists():
                log.write(_last(files / "console.log", LAST_LOG_BYTES))
    sender = states[SENDER]
    spec = _spec(campaign, transfer)
    snap = spec["captures"]["snap_bytes"]
    duration_s = max(1.0, float(sender["ended_s"]))
    plan = plan_of(campaign, transfer, port, duration_s, spec["samplers"]["sockets_s"], snap)
    (raw / "plan.json").write_text(plan.to_json())
    (raw / "guest.json").write_text(json.dumps(_facts(states, interfaces, circumstances), indent=1, sort_keys=True))
    document = {
        "format": FORMAT,
        "experiment": campaign.campaign,
        "run": transfer.id,
        "seed": transfer.seed,
        "params": transfer.params,
        "host": "wan",
        "status": "complete",
        "error": None,
        "verdict": None,
        "metrics": {},
        "spec": spec,
        "environment": {"nodes": _nodes(states), "kernel": sender["environment"]["kernel"], "bottleneck": None},
        "facts": circumstances,
        "timing": {"virtual_s": duration_s, "wall_s": round(duration_s, 3), "ended": int(time.time())},
    }
    (folder / "run.json").write_text(json.dumps(document, indent=1) + "\n")


def _take(file: Path, side: str, target: Path) -> None:
    """A file that has not come is the host's fault, not this machine's disk's."""
    if not file.is_file():
        raise CollectError(f"{side}: no {file.name} came home")
    shutil.move(file, target)


def _last(file: Path, most: int) -> bytes:
    with open(file, "rb") as content:
        content.seek(max(0, file.stat().st_size - most))
        return content.read(most)


def _spec(campaign: Campaign, transfer: Transfer) -> dict[str, Any]:
    from base import quantities  # the texts of the file, and their numbers beside them

    snap = campaign.captures.snap
    return {
        "warpbed": 1, "name": campaign.campaign, "title": campaign.title, "source": campaign.source, "host": "wan",
        "duration": campaign.transfer_at_most, "warmup": "0s", "sweep": None,
        "topology": {"name": "wan", "params": {"from": campaign.sender, "to": transfer.receiver}},
        "flows": [{"name": FLOW, "cca": {"name": transfer.cca, "params": {}}, "from": SENDER, "to": RECEIVER,
                   "size": transfer.size}],
        "captures": {"at": "ends", "snap": snap, "snap_bytes": 0 if snap == "all" else quantities.size_bytes(snap)},
        "samplers": {"tcp_probe": False, "sockets": campaign.sockets,
            "sockets_s": quantities.seconds(campaign.sockets)},
    }  # fmt: skip


def _nodes(states: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {side: state["environment"]["nodes"][side] for side, state in states.items()}


def _facts(
    states: dict[str, dict[str, Any]], interfaces: dict[str, str], circumstances: dict[str, Any]
) -> dict[str, Any]:
    """What the collectors and the verdict read of the host: guest.json of every other run."""
    sender = states[SENDER]
    return {
        "ok": True, "error": None, "wan": circumstances,
        "start_realtime_ns": sender["start_realtime_ns"], "start_monotonic_ns": sender["start_monotonic_ns"],
        "ended_s": sender["ended_s"], "idle_rtt": {}, "queue_statistics": {}, "tcp_probe_lost": 0,
        "capture_drops": {interfaces[side]: int(state["capture_drops"]) for side, state in states.items()},
        "captures_cut": [interfaces[side] for side, state in states.items() if state["captures_cut"]],
        "confined": {side: state["confined"] for side, state in states.items() if "confined" in state},
        # offloads belong to the host's own interfaces, which a campaign leaves as they are
        "environment": {"nodes": {side: {**node, "offloads": {}} for side, node in _nodes(states).items()},
                        "kernel": sender["environment"]["kernel"], "tools": sender["environment"]["tools"]},
    }  # fmt: skip
