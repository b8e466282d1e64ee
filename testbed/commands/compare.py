# SPDX-License-Identifier: Apache-2.0
"""`./warpbed compare`: compare measurements with the paper's claims and numbers and the experiment's guards."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from analysis import published
from analysis.results import load_experiment
from analysis.table import number
from testbed.commands.arguments import host, results
from testbed.commands.output import add_format, render
from testbed.commands.prepared import results_of
from testbed.experiments import prepare
from testbed.outcome_rows import rows_of
from testbed.outcomes import outcomes, print_outcomes

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
        print(render(rows_of(found), "csv"), end="")
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
