# SPDX-License-Identifier: Apache-2.0
"""What the traffic's programs told of themselves → one row per entry, `applications.json` among the records.

Rows have `flow` (the entry's name), `app` (its kind), `cca`, `src`, `dst`, and the kind's own fields; docs/traffic.md
lists them. Both sides' files are put together here: what was lost is what one sent and the other did not get.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from collectors.errors import CollectError
from plan.model import Plan, TrafficPlan
from plan.summary import spread

FILE = "applications.json"
LONG = ("samples", "pages", "segments", "transfers", "connections")
"""Lists that stay in the raw files: one item for each thing that happened."""
INTERNAL = ("name", "kind", "side", "node", "error")

Sides = Mapping[str, list[dict[str, Any]]]


def collect(raw: Path, out: Path, plan: Plan) -> None:
    """Write the rows; nothing where the plan has no traffic.

    Raises CollectError where a program's file is missing or damaged.
    """
    if plan.traffic:
        (out / FILE).write_text(json.dumps(rows(raw, plan), indent=1) + "\n")


def rows(raw: Path, plan: Plan) -> list[dict[str, Any]]:
    """One row per traffic entry, in the plan's order."""
    entries: dict[str, list[TrafficPlan]] = {}
    for part in plan.traffic:
        entries.setdefault(part.name, []).append(part)
    return [_row(raw, plan, parts) for parts in entries.values()]


def _row(raw: Path, plan: Plan, parts: list[TrafficPlan]) -> dict[str, Any]:
    kind, name = parts[0].kind, parts[0].name
    sides: dict[str, list[dict[str, Any]]] = {"client": [], "server": []}
    for part in parts:
        sides[part.side].append(_read(raw / f"{part.name}.{part.side}.{part.node}.json"))
    nodes = {side: ",".join(part.node for part in parts if part.side == side) for side in sides}
    if kind in ("web", "video"):  # their data comes from the server
        source, destination = nodes["server"], nodes["client"]
    else:
        source, destination = nodes["client"], nodes["server"] or str(parts[0].settings.get("to", ""))
    cca = next((flow.cca for flow in plan.flows if flow.app != "iperf3" and flow.port == parts[0].port), None)
    row = {"flow": name, "app": kind, "cca": cca, "src": source, "dst": destination}
    return row | _KINDS[kind](sides, parts)


def _read(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise CollectError(f"{file}: {error}") from error
    if not isinstance(found, dict):
        raise CollectError(f"{file}: not an object")
    return found


def _own(result: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in result.items() if key not in (*INTERNAL, *LONG)}


def _datagrams(sides: Sides, _parts: list[TrafficPlan]) -> dict[str, Any]:
    (client,), (server,) = sides["client"], sides["server"]
    sent, got = client["packets"], server["packets"]
    return {
        "sent_packets": sent, "received_packets": got, "lost_share": (sent - got) / sent if sent else None,
        "offered_mbps": client.get("mean_rate_mbps"), "busy_periods": client.get("busy_periods"),
        **{key: value for key, value in _own(server).items() if key != "packets"},
    }  # fmt: skip


def _on_off(sides: Sides, parts: list[TrafficPlan]) -> dict[str, Any]:
    (client,), (server,) = sides["client"], sides["server"]
    busy = next(part.settings["periods"] for part in parts if part.side == "client")
    busy_s = sum(to - start for start, to in busy)
    return {
        "connections_made": len(client["connections"]), "received_bytes": server["bytes"], "busy_s": busy_s,
        "busy_periods": len(busy), "busy_goodput_mbps": server["bytes"] * 8e-6 / busy_s,
        "failed": sum(entry["error"] is not None for entry in client["connections"]),
    }  # fmt: skip


def _transfers(sides: Sides, parts: list[TrafficPlan]) -> dict[str, Any]:
    made = [transfer for client in sides["client"] for transfer in client["transfers"]]
    planned = sum(len(part.settings["transfers"]) for part in parts if part.side == "client")
    done = [transfer for transfer in made if transfer["completion_s"] is not None]
    return {
        "planned": planned, "started": len(made), "completed": len(done),
        "failed": sum(transfer["error"] is not None for transfer in made),
        "received_bytes": sum(server["bytes"] for server in sides["server"]),
        **spread("completion", "s", [transfer["completion_s"] for transfer in done]),
    }  # fmt: skip


def _http(sides: Sides, _parts: list[TrafficPlan]) -> dict[str, Any]:
    (client,), (server,) = sides["client"], sides["server"]
    return {**_own(client), "requests": server.get("requests")}


def _packet_pairs(sides: Sides, _parts: list[TrafficPlan]) -> dict[str, Any]:
    (client,), (server,) = sides["client"], sides["server"]
    whole = sum(gap["pairs"] for gap in server["gaps"])
    return {"sent_pairs": client["pairs"], "received_pairs": whole, "gaps": server["gaps"]}


def _ping(sides: Sides, _parts: list[TrafficPlan]) -> dict[str, Any]:
    (client,) = sides["client"]
    return _own(client)


_KINDS: dict[str, Callable[[Sides, list[TrafficPlan]], dict[str, Any]]] = {
    "cbr": _datagrams, "poisson": _datagrams, "on_off": _on_off, "transfers": _transfers, "web": _http, "video": _http,
    "packet_pairs": _packet_pairs, "ping": _ping,
}  # fmt: skip
