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

from dashboards.addresses import TITLES, url


class Raw:
    """JSON that the SDK has no type for."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.content = content

    def to_json(self) -> dict[str, Any]:
        return self.content


class Link(Builder[Any]):
    def __init__(self, origin: str, target: str) -> None:
        title = TITLES[target]
        self.content = {
            "title": title, "type": "link", "icon": "dashboard", "url": url(origin, target), "asDropdown": False,
            "includeVars": False, "keepTime": False, "tags": [], "targetBlank": False, "tooltip": f"Open {title}",
        }  # fmt: skip

    def build(self) -> Any:
        return Raw(self.content)
