# SPDX-License-Identifier: Apache-2.0
"""Hold runs against what their experiment file expects and what its paper reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from analysis import published
from analysis.expectations import check_all
from analysis.results import Run
from testbed.experiments import Prepared


def print_findings(runs: Sequence[Run], asked: Prepared, unasked: Sequence[Mapping[str, Any]] = ()) -> int:
    """Print the outcome of each expectation; 1 where one does not hold.

    unasked: parameters of runs that `--only` left out; expectations about these alone are not judged
    """
    code = 0
    for claim in expectations(runs, asked, unasked):
        where = ", ".join(f"{name}={value}" for name, value in claim["where"].items())
        parts = [f"{claim['outcome']}: {claim['metric']} {claim['bound']}", f"where {where}" if where else ""]
        parts += [f"({claim['reason']})" if claim["reason"] else "", f"[{claim['source']}]" if claim["source"] else ""]
        print(" ".join(part for part in parts if part))
        if claim["outcome"] != "holds":
            code = 1
    return code


def print_published(runs: Sequence[Run], asked: Prepared) -> None:
    """Print in one line how the paper's numbers fare, where the file has some."""
    rows = published.compare(asked.experiment.published, runs)
    if rows:
        counts = [f"{sum(row.outcome == name for row in rows)} {name}" for name in published.OUTCOMES]
        print(f"published values: {', '.join(counts)} (./warpbed compare shows them)")


def expectations(
    runs: Sequence[Run], asked: Prepared, unasked: Sequence[Mapping[str, Any]] = ()
) -> list[dict[str, Any]]:
    """The outcome of each expectation as plain data."""
    claims = [claim.model_dump(exclude_none=True) for claim in asked.experiment.expectations]
    return [
        {
            "metric": finding.expectation.metric,
            "where": dict(finding.expectation.where),
            "bound": finding.expectation.bound,
            "outcome": finding.outcome,
            "reason": finding.reason,
            "source": finding.expectation.source,
            "values": dict(finding.values),
        }
        for finding in check_all(claims, runs, unasked)
    ]
