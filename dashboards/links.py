# SPDX-License-Identifier: Apache-2.0
"""Links from dashboard to dashboard.

A dashboard over several experiments has the variable `experiments` (several, All), one over a single experiment has `experiment`.
The names differ because Grafana hands All on to a variable of the same name that takes one value, and puts nothing into its
queries. Each dashboard over several therefore has a hidden `experiment` too: the latest of those chosen. `to_ms` is the end of
what a dashboard over a run's own time has to show, and `compared` a link's parameters of those that Compare lays over each other.
"""

from __future__ import annotations

from typing import Any

from grafana_foundation_sdk.cog.builder import Builder

from dashboards.addresses import TITLES, WHOLE, report, url


class Raw:
    """JSON that the SDK has no type for."""

    def __init__(self, content: dict[str, Any]) -> None:
        self.content = content

    def to_json(self) -> dict[str, Any]:
        return self.content


class Link(Builder[Any]):
    """An entry of a dashboard's bar. outside: Grafana's router, which knows dashboards only, leaves it to the browser in a new tab"""

    def __init__(
        self, title: str, address: str, tooltip: str, *, icon: str = "dashboard", outside: bool = False
    ) -> None:
        self.content = {
            "title": title, "type": "link", "icon": icon, "url": address, "asDropdown": False,
            "includeVars": False, "keepTime": False, "tags": [], "targetBlank": outside, "tooltip": tooltip,
        }  # fmt: skip

    def build(self) -> Any:
        return Raw(self.content)


def bar(name: str) -> list[Link]:
    """The links of a dashboard: its own whole length, the other dashboards, the report."""
    links = [Link(TITLES[other], url(name, other), f"Open {TITLES[other]}") for other in TITLES if other != name]
    if name in WHOLE:
        links.insert(
            0, Link("Whole length", url(name, name), "Show what is chosen from its start to its end", icon="bolt")
        )
    if name != "reproduction":
        links.append(Link("Report", report(), "Open the experiment's report", icon="doc", outside=True))
    return links
