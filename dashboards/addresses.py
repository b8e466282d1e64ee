# SPDX-License-Identifier: Apache-2.0
"""The dashboards' addresses, and which variables they take. Without the library that builds the dashboards, so that commands use it too."""

from __future__ import annotations

ZERO_S = 946_684_800
"""Dashboards over a run's own time start here: 2000-01-01 00:00:00 UTC shows as 00:00:00, and zooming works."""
TITLES = {
    "experiments": "Experiments", "run": "Run", "compare": "Compare", "sweep": "Sweep", "campaign": "Campaign",
    "fidelity": "Fidelity",
    "reproduction": "Reproduction",
}  # fmt: skip
SEVERAL = ("experiments", "compare", "fidelity", "reproduction")
"""Dashboards over several experiments."""
ELAPSED = ("run", "compare")
"""Dashboards over a run's own time."""
WHOLE = (*ELAPSED, "campaign")
"""Dashboards with a link that shows the whole length of what is chosen."""
REPORTS = "public/warpbed"
"""Where Grafana serves the reports, below its address: it gives out what lies in its folder `public`."""


def uid(name: str) -> str:
    return f"warpbed-{name}"


def report() -> str:
    """Where a link to an experiment's report leads."""
    return f"/{REPORTS}/${{experiment:percentencode}}/report.html"


def url(origin: str, target: str) -> str:
    """Where a link leads. What is chosen at its origin is chosen there too, as far as the target has a place for it."""
    if target == "reproduction":  # is about theses, whatever the experiments
        return f"/d/{uid(target)}"
    if target == "compare" and origin != "compare" and origin in SEVERAL:
        return f"/d/{uid(target)}?${{compared:raw}}"
    if target not in SEVERAL:
        chosen = ["var-experiment=${experiment:percentencode}"]
    elif origin in SEVERAL:
        chosen = ["${experiments:queryparam}"]
    else:
        chosen = ["var-experiments=${experiment:percentencode}"]
    if target == "run" and origin in ELAPSED:
        chosen.append("var-run=${run:percentencode}")
    if (origin, target) == ("campaign", "campaign"):
        chosen.append("${receiver:queryparam}&${cca:queryparam}&${size:queryparam}")
        chosen.append(f"from={ZERO_S * 1000}&to=${{end_ms:percentencode}}")
    if (origin, target) == ("compare", "compare"):
        chosen.append("${runs:queryparam}&var-by=${by:percentencode}")
    if target in ELAPSED:
        chosen.append(f"from={ZERO_S * 1000}&to=${{to_ms:percentencode}}")
    return f"/d/{uid(target)}?{'&'.join(chosen)}"
