# SPDX-License-Identifier: Apache-2.0
"""A campaign's claims about its transmission times, decided over its runs as the claims of experiment files are over seeds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from analysis import claims
from analysis.results import Run
from testbed.campaign.model import Campaign
from testbed.campaign.outcome import of_run, runs_in
from testbed.outcomes import claim_line


def runs(folder: Path) -> Iterator[Run]:
    """Each complete transfer below a campaign's results: its receiver, size and algorithm, the campaign's run as seed, its seconds."""
    for run in runs_in(folder):
        outcome = of_run(run)
        if outcome is not None and outcome.verdict != "invalid":
            named = {name: run.params.get(name) for name in ("receiver", "size", "cca")}
            number = run.params.get("run")
            yield Run(
                folder.name,
                run.path.name,
                run.path,
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
