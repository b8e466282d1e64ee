# SPDX-License-Identifier: Apache-2.0
"""Hold runs against what their experiment file says: a paper's claims and numbers, and guards of our own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis import claims, published
from analysis.expectations import Finding, check_all
from analysis.results import Run, load_experiment
from base.text import clean
from testbed.experiments import Prepared


@dataclass(frozen=True)
class Outcomes:
    """guards: those of the file and its `expectations`; claims and published: what stands under a paper's name."""

    guards: tuple[Finding, ...]
    claims: tuple[claims.Finding, ...]
    published: tuple[published.Row, ...]

    @property
    def failed(self) -> bool:
        """Whether something is not as the file says, and the file does not know it."""
        return self.guards_failed or self.claims_failed or published.failed(self.published)

    @property
    def guards_failed(self) -> bool:
        return any(finding.outcome != "holds" for finding in self.guards)

    @property
    def claims_failed(self) -> bool:
        return any(finding.failed for finding in self.claims)

    def as_data(self) -> dict[str, Any]:
        return {
            "claims": claims.as_data(self.claims),
            "expectations": [guard_as_data(finding) for finding in self.guards],
            "published": published.as_data(self.published),
        }


def outcomes(runs: Sequence[Run], asked: Prepared, folder: Path, unasked: Sequence[Mapping[str, Any]] = ()) -> Outcomes:
    """folder: results/<experiment>, beside which claims find other experiments

    unasked: parameters of runs that `--only` left out; what speaks of these alone, or cannot be decided without them, is not judged
    """
    experiment = asked.experiment
    guards = [
        row.model_dump(exclude_none=True) for listed in (experiment.guards, experiment.expectations) for row in listed
    ]

    def elsewhere(name: str) -> Sequence[Run]:
        return load_experiment(folder.parent / name)

    judged = claims.check_all(experiment.claims, runs, elsewhere, experiment.looks)
    if unasked:
        judged = tuple(finding for finding in judged if finding.outcome != "not comparable")
    return Outcomes(check_all(guards, runs, unasked), judged, published.compare(experiment.published, runs))


def print_outcomes(judged: Outcomes, *, rows: bool = False) -> None:
    """A line for each guard and claim; of the published numbers a count unless their rows are shown elsewhere."""
    for guard in judged.guards:
        print(guard_line(guard))
    for claim in judged.claims:
        print(claim_line(claim))
    if judged.published and not rows:
        counts = [f"{sum(row.outcome == name for row in judged.published)} {name}" for name in published.OUTCOMES]
        print(f"published values: {', '.join(counts)} (./warpbed compare shows them)")


def guard_line(finding: Finding) -> str:
    guard = finding.expectation
    where = ", ".join(f"{name}={value}" for name, value in guard.where.items())
    parts = [f"{finding.outcome}: {guard.metric} {guard.bound}", f"where {where}" if where else ""]
    parts += [f"({finding.reason})" if finding.reason else "", f"[{guard.source}]" if guard.source else ""]
    return clean(" ".join(part for part in parts if part))


def claim_line(finding: claims.Finding) -> str:
    reason = f" ({finding.reason})" if finding.reason else ""
    return clean(f"{finding.outcome}: {finding.words}{reason} [{finding.claim.source}]")


def guard_as_data(finding: Finding) -> dict[str, Any]:
    return {
        "metric": finding.expectation.metric,
        "where": dict(finding.expectation.where),
        "bound": finding.expectation.bound,
        "outcome": finding.outcome,
        "reason": finding.reason,
        "source": finding.expectation.source,
        "values": dict(finding.values),
    }
