# SPDX-License-Identifier: Apache-2.0
"""Links from dashboard to dashboard.

A dashboard over several experiments has the variable `experiments` (several, All), one over a single experiment has `experiment`.
The names differ because Grafana hands All on to a variable of the same name that takes one value, and puts nothing into its
queries. Each dashboard over several therefore has a hidden `experiment` too: the latest of those chosen. `to_ms` is the end of
what a dashboard over a run's own time has to show.
"""

from __future__ import annotations

from typing import Any

from grafana_foundation_sdk.cog.builder import Builder

ZERO_S = 946_684_800
"""Dashboards over a run's own time start here: 2000-01-01 00:00:00 UTC shows as 00:00:00, and zooming works."""
TITLES = {
    "experiments": "Experiments", "run": "Run", "compare": "Compare", "sweep": "Sweep", "campaign": "Campaign", "fidelity": "Fidelity",
}  # fmt: skip
SEVERAL = ("experiments", "compare", "fidelity")
"""Dashboards over several experiments."""
ELAPSED = ("run", "compare")
"""Dashboards over a run's own time."""


class Raw:
    """JSON that the SDK has no type for."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.content = content

    def to_json(self) -> dict[str, Any]:
        return self.content


def uid(name: str) -> str:
    return f"warpbed-{name}"


def url(origin: str, target: str) -> str:
    """Where a link leads. What is chosen at its origin is chosen there too, as far as the target has a place for it."""
    if target not in SEVERAL:
        chosen = ["var-experiment=${experiment:percentencode}"]
    elif origin in SEVERAL:
        chosen = ["${experiments:queryparam}"]
    else:
        chosen = ["var-experiments=${experiment:percentencode}"]
    if (origin, target) == ("compare", "run"):
        chosen.append("var-run=${run:percentencode}")
    if target in ELAPSED:
        chosen.append(f"from={ZERO_S * 1000}&to=${{to_ms:percentencode}}")
    return f"/d/{uid(target)}?{'&'.join(chosen)}"


class Link(Builder[Any]):
    def __init__(self, origin: str, target: str) -> None:
        title = TITLES[target]
        self.content = {
            "title": title, "type": "link", "icon": "dashboard", "url": url(origin, target), "asDropdown": False,
            "includeVars": False, "keepTime": False, "tags": [], "targetBlank": False, "tooltip": f"Open {title}",
        }  # fmt: skip

    def build(self) -> Any:
        return Raw(self.content)
