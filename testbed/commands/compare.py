# SPDX-License-Identifier: Apache-2.0
"""`./warpbed compare`: compare measurements with the paper's claims and numbers and the experiment's guards."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from analysis import published
from analysis.results import load_experiment
from analysis.table import number
from base.screen import print_table
from base.text import clean, json_text
from testbed import baseline, junit
from testbed.commands.arguments import host, results
from testbed.commands.output import add_format, render
from testbed.commands.prepared import results_of
from testbed.experiments import prepare
from testbed.outcome_rows import rows_of
from testbed.outcomes import outcomes, print_outcomes

HELP = "compare measurements with the paper's claims and numbers and the experiment's guards"


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("experiment", type=Path, help="experiment file")
    command.add_argument("--junit", type=Path, metavar="FILE", help="write what was judged as JUnit XML, too")
    command.add_argument("--save-baseline", type=Path, metavar="FILE", help="keep the means of these runs for later")
    command.add_argument(
        "--baseline",
        type=Path,
        metavar="FILE",
        help="tell means that have changed by more than their interval since; 1 where one has",
    )
    add_format(command)
    host(command)
    results(command)


def main(options: argparse.Namespace) -> int:
    """1 where a guard does not hold, or a claim or published value is contradicted and the file does not say why."""
    folder, names = results_of(options)
    asked = prepare(options.experiment, host=options.host)
    kept = baseline.read(options.baseline, asked.experiment.name) if options.baseline else None
    runs = load_experiment(folder, names)
    judged = outcomes(runs, asked, folder)
    means = baseline.means(runs, asked.experiment.metrics) if kept or options.save_baseline else []
    changes = baseline.changes(kept, means) if kept else []
    if options.save_baseline:
        baseline.save(options.save_baseline, asked.experiment.name, means)
    if options.junit:
        junit.write(options.junit, asked.experiment.name, [*junit.of_outcomes(judged), *junit.of_changes(changes)])
    if options.format == "json":
        more = {"baseline": [asdict(one) for one in changes]} if kept else {}
        print(json_text({**judged.as_data(), **more}))
    elif options.format == "csv":
        print_table(render(rows_of(judged), "csv"))
    else:
        print_outcomes(judged, rows=True)
        print_table(render(_shown(judged.published), "table"))
        for line in _changed(changes):
            print(line)
    return 1 if judged.failed or any(one.changed for one in changes) else 0


def _changed(changes: Sequence[baseline.Change]) -> list[str]:
    """A line for each mean that has changed, and how many were compared."""
    changed = [one for one in changes if one.changed]
    lines = [
        clean(
            f"changed by more than its interval: {one.metric}{', '.join(['', *(f'{k}={v}' for k, v in one.params.items())])}: {one.words}"
        )
        for one in changed
    ]
    return [*lines, f"baseline: {len(changed)} of {len(changes)} means have changed"] if changes else []


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
    if row.interval is None:
        return "" if row.measured is None else published.NO_INTERVAL
    return f"{number(row.interval.low)} … {number(row.interval.high)}"
