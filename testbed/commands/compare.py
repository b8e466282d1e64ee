# SPDX-License-Identifier: Apache-2.0
"""`./warpbed compare`: compare measurements with the experiment's expectations and the paper's numbers."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from analysis import published
from analysis.results import load_experiment
from analysis.table import number
from testbed.claims import expectations, print_findings
from testbed.commands.arguments import host, results
from testbed.commands.output import add_format, render
from testbed.commands.prepared import results_of
from testbed.experiments import prepare

HELP = "compare measurements with the experiment's expectations and the paper's numbers"


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("experiment", type=Path, help="experiment file")
    add_format(command)
    host(command)
    results(command)


def main(options: argparse.Namespace) -> int:
    """1 where an expectation does not hold, or a published value disagrees and the file does not say why."""
    folder, names = results_of(options)
    asked = prepare(options.experiment)
    runs = load_experiment(folder, names)
    rows = published.compare(asked.experiment.published, runs)
    claims = expectations(runs, asked)
    if options.format == "json":
        print(json.dumps({"expectations": claims, "published": published.as_data(rows)}, indent=1, ensure_ascii=False))
    elif options.format == "csv":
        print(render(_all(claims, rows), "csv"), end="")
    else:
        print_findings(runs, asked)
        print(render(_shown(rows), "table"), end="")
    held = all(claim["outcome"] == "holds" for claim in claims)
    return 0 if held and not published.failed(rows) else 1


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


def _all(claims: Sequence[dict[str, Any]], rows: Sequence[published.Row]) -> list[dict[str, Any]]:
    """Both kinds of claim in the columns of one table."""
    found = [
        {
            "kind": "expectation",
            "source": claim["source"],
            "metric": claim["metric"],
            "unit": "",
            "where": claim["where"],
            "asked": claim["bound"],
            "measured": None,
            "low": None,
            "high": None,
            "runs": len(claim["values"]),
            "outcome": claim["outcome"],
            "reason": claim["reason"],
        }
        for claim in claims
    ]
    for row in rows:
        found.append(
            {
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
        )
    return found
