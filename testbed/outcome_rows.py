# SPDX-License-Identifier: Apache-2.0
"""What became of guards, claims and published numbers as rows of one table."""

from __future__ import annotations

from typing import Any

from analysis import claims, expectations, published
from analysis.statistics import is_number
from testbed.outcomes import Outcomes, guard_as_data


def rows_of(judged: Outcomes) -> list[dict[str, Any]]:
    """All kinds of claim in the columns of one table."""
    return [
        *map(_guard_row, judged.guards),
        *(row for claim in judged.claims for row in _claim_rows(claim)),
        *map(_published_row, judged.published),
    ]


def _guard_row(finding: expectations.Finding) -> dict[str, Any]:
    """low, high: the least and the greatest of the runs; measured where they are the same."""
    guard = guard_as_data(finding)
    numbers = sorted(value for value in guard["values"].values() if is_number(value))
    least, most = (numbers[0], numbers[-1]) if numbers else (None, None)
    return {
        "kind": "expectation",
        "source": guard["source"],
        "metric": guard["metric"],
        "unit": "",
        "where": guard["where"],
        "asked": guard["bound"],
        "measured": least if least == most else None,
        "low": least,
        "high": most,
        "runs": len(guard["values"]),
        "outcome": guard["outcome"],
        "reason": guard["reason"],
    }


def _claim_rows(finding: claims.Finding) -> list[dict[str, Any]]:
    """A row for each statement of each combination; one for a claim that has none."""
    head = {"kind": "claim", "source": finding.claim.source, "metric": finding.claim.metric, "unit": ""}
    data = claims.as_data([finding])[0]
    rows = [
        {
            **head,
            "where": part["where"],
            "asked": f"{finding.words}: {statement['says']}",
            "measured": statement["estimate"],
            "low": statement["interval"] and statement["interval"][0],
            "high": statement["interval"] and statement["interval"][1],
            "runs": statement["seeds"],
            "outcome": statement["outcome"],
            "reason": finding.reason,
        }
        for part in data["parts"]
        for statement in part["statements"]
    ]
    empty = {"where": "", "asked": finding.words, "measured": None, "low": None, "high": None, "runs": 0}
    return rows or [{**head, **empty, "outcome": finding.outcome, "reason": finding.reason}]


def _published_row(row: published.Row) -> dict[str, Any]:
    return {
        "kind": "published",
        "source": row.source,
        "metric": row.metric,
        "unit": row.unit,
        "where": dict(row.where),
        "asked": row.published,
        "measured": row.measured,
        "low": None if row.interval is None else row.interval.low,
        "high": None if row.interval is None else row.interval.high,
        "runs": row.runs,
        "outcome": row.outcome,
        "reason": row.reason,
    }
