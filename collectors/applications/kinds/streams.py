# SPDX-License-Identifier: Apache-2.0
"""TCP connections: on and off, or transfers that arrive."""

from __future__ import annotations

from typing import Any

from collectors.applications.kind import Kind, Sides
from plan.model import TrafficPlan
from plan.summary import spread


def on_off(sides: Sides, parts: list[TrafficPlan]) -> dict[str, Any]:
    (client,), (server,) = sides["client"], sides["server"]
    busy = next(part.settings["periods"] for part in parts if part.side == "client")
    busy_s = sum(to - start for start, to in busy)
    return {
        "connections_made": len(client["connections"]),
        "received_bytes": server["bytes"],
        "busy_s": busy_s,
        "busy_periods": len(busy),
        "busy_goodput_mbps": server["bytes"] * 8e-6 / busy_s,
        "failed": sum(entry["error"] is not None for entry in client["connections"]),
    }


def transfers(sides: Sides, parts: list[TrafficPlan]) -> dict[str, Any]:
    transfers_started = [transfer for client in sides["client"] for transfer in client["transfers"]]
    planned = sum(len(part.settings["transfers"]) for part in parts if part.side == "client")
    completed = [transfer for transfer in transfers_started if transfer["completion_s"] is not None]
    return {
        "planned": planned,
        "started": len(transfers_started),
        "completed": len(completed),
        "failed": sum(transfer["error"] is not None for transfer in transfers_started),
        "received_bytes": sum(server["bytes"] for server in sides["server"]),
        **spread("completion", "s", [transfer["completion_s"] for transfer in completed]),
        **spread(
            "throughput",
            "mbps",
            [transfer["delivered_bytes"] * 8e-6 / transfer["completion_s"] for transfer in completed],
        ),
    }


KINDS = {"on_off": Kind(on_off), "transfers": Kind(transfers)}
