# SPDX-License-Identifier: Apache-2.0
"""`./warpbed compare`: compare measurements with the paper's claims and numbers and the experiment's guards."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from analysis import claims, expectations, published
from analysis.results import load_experiment
from analysis.table import number
from testbed.commands.arguments import host, results
from testbed.commands.output import add_format, render
from testbed.commands.prepared import results_of
from testbed.experiments import prepare
from testbed.outcomes import Outcomes, guard_as_data, outcomes, print_outcomes

HELP = "compare measurements with the paper's claims and numbers and the experiment's guards"


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("experiment", type=Path, help="experiment file")
    add_format(command)
    host(command)
    results(command)


def main(options: argparse.Namespace) -> int:
    """1 where a guard does not hold, or a claim or published value is contradicted and the file does not say why."""
    folder, names = results_of(options)
    asked = prepare(options.experiment)
    found = outcomes(load_experiment(folder, names), asked, folder)
    if options.format == "json":
        print(json.dumps(found.as_data(), indent=1, ensure_ascii=False))
    elif options.format == "csv":
        print(render(_all(found), "csv"), end="")
    else:
        print_outcomes(found, rows=True)
        print(render(_shown(found.published), "table"), end="")
    return 1 if found.failed else 0


def _shown(rows: Sequence[published.Row]) -> list[dict[str, Any]]:
    return [
        {
            "source": row.source,
            "metric": row.metric,
            "unit": "" if row.unit == "1" else row.unit,
            "where": row.place,
            "published": number(row.published),
            "measured": number(row.measured),
            "95 % interval": _interval(row),
            "runs": row.runs,
            "outcome": row.outcome,
            "reason": row.reason,
        }
        for row in rows
    ]


def _interval(row: published.Row) -> str:
    return "" if row.interval is None else f"{number(row.interval.low)} … {number(row.interval.high)}"


def _all(found: Outcomes) -> list[dict[str, Any]]:
    """All kinds of claim in the columns of one table."""
    return [
        *map(_guard_row, found.guards),
        *(row for claim in found.claims for row in _claim_rows(claim)),
        *map(_published_row, found.published),
    ]


def _guard_row(finding: expectations.Finding) -> dict[str, Any]:
    guard = guard_as_data(finding)
    return {
        "kind": "expectation",
        "source": guard["source"],
        "metric": guard["metric"],
        "unit": "",
        "where": guard["where"],
        "asked": guard["bound"],
        "measured": None,
        "low": None,
        "high": None,
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
