# SPDX-License-Identifier: Apache-2.0
"""A campaign's claims about its transmission times, decided over its runs as the claims of experiment files are over seeds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from analysis import claims
from analysis.results import Run
from testbed.campaign.model import Campaign
from testbed.campaign.outcome import of_folder
from testbed.outcomes import claim_line


def runs(folder: Path) -> Iterator[Run]:
    """Each complete transfer below a campaign's results: its receiver, size and algorithm, the campaign's run as seed, its seconds."""
    for file in sorted(folder.glob("*/run.json")):
        if ".failed-" in file.parent.name:
            continue
        params = json.loads(file.read_text()).get("params", {})
        outcome = of_folder(file.parent)
        if outcome is not None and outcome.verdict != "invalid":
            named = {name: params.get(name) for name in ("receiver", "size", "cca")}
            number = params.get("run")
            yield Run(
                folder.name,
                file.parent.name,
                file.parent,
                seed=number if isinstance(number, int) else None,
                params=named,
                status="complete",
                verdict=outcome.verdict,
                metrics={"completion_s": outcome.seconds},
            )


def findings(campaign: Campaign, folder: Path) -> tuple[claims.Finding, ...]:
    return claims.check_all(campaign.claims, tuple(runs(folder)))


def render(findings: Sequence[claims.Finding]) -> str:
    """A line for each claim; nothing without claims."""
    return "".join(f"{claim_line(finding)}\n" for finding in findings)
