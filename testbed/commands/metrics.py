# SPDX-License-Identifier: Apache-2.0
"""`./warpbed metrics`: the metrics of an experiment's runs."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence

from analysis import cells
from analysis.errors import AnalysisError
from analysis.results import Run, load_experiment
from base.errors import UsageError
from base.screen import print_table
from testbed.commands.arguments import host, results
from testbed.commands.output import of_runs
from testbed.commands.prepared import results_of

HELP = "print the metrics of an experiment's runs"


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("experiment", help="experiment file or name")
    command.add_argument("--format", choices=["table", "json", "csv"], default="table")
    command.add_argument("--cells", action="store_true", help="means with confidence intervals per combination")
    command.add_argument(
        "--paired",
        metavar="P=A,B",
        default="",
        help="differences between P=A and P=B at equal seeds, e.g. cca=cubic,medley",
    )
    host(command)
    results(command)


def main(options: argparse.Namespace) -> int:
    """Print the metrics of all runs."""
    folder, names = results_of(options)
    runs = load_experiment(folder, names)
    if options.cells or options.paired:
        print_table(_of_cells(runs, options.paired, options.format))
        return 0
    print_table(of_runs(runs, options.format))
    return 0


def _of_cells(runs: Sequence[Run], pair: str, form: str) -> str:
    of_cells = cells.rows(runs)
    nothing = "no run is complete and valid"
    if pair:
        match = re.fullmatch(r"([^=]+)=([^,]+),([^,]+)", pair)
        if match is None:
            raise UsageError(f"--paired {pair!r}: write a parameter and two of its values, such as cca=cubic,medley")
        try:
            of_cells = cells.paired_rows(runs, *match.groups())
            nothing = "no seed has a run that is complete and valid on both sides"
        except AnalysisError as error:
            raise UsageError(f"--paired {pair!r}: {error}") from error
    if form == "table":
        return cells.render(of_cells, nothing)
    return cells.as_json(of_cells) if form == "json" else cells.as_csv(of_cells)
