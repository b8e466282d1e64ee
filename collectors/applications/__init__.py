# SPDX-License-Identifier: Apache-2.0
"""What the traffic's programs reported → one row per entry, `applications.json` among the records.

Rows have `flow` (the entry's name), `app` (its kind), `cca`, `src`, `dst`, and the kind's own fields; docs/traffic.md
lists them. Both sides' files are put together here: what was lost is what one sent and the other did not get.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from base.discovery import merged
from base.small_files import small_json
from collectors.applications import kinds
from collectors.applications.kind import Kind
from collectors.errors import CollectError
from plan.model import Plan, TrafficPlan

FILE = "applications.json"
KINDS: dict[str, Kind] = merged(kinds, "KINDS")


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
    if KINDS[kind].data_comes_from_the_server:
        source, destination = nodes["server"], nodes["client"]
    else:
        source, destination = nodes["client"], nodes["server"] or str(parts[0].settings.get("to", ""))
    cca = next((flow.cca for flow in plan.flows if flow.app != "iperf3" and flow.port == parts[0].port), None)
    row = {"flow": name, "app": kind, "cca": cca, "src": source, "dst": destination}
    return row | KINDS[kind].row(sides, parts)


def _read(file: Path) -> dict[str, Any]:
    try:
        result = small_json(file)
    except (OSError, ValueError) as error:
        raise CollectError(f"{file}: {error}") from error
    if not isinstance(result, dict):
        raise CollectError(f"{file}: not an object")
    return result
