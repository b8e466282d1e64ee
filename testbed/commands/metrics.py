# SPDX-License-Identifier: Apache-2.0
"""`./warpbed metrics`: the metrics of an experiment's runs."""

from __future__ import annotations

import argparse

from analysis.results import load_experiment
from analysis.table import Style, as_csv, as_json, render
from testbed.commands.arguments import host, results
from testbed.commands.prepared import results_of

NAME = "metrics"
HELP = "the metrics of an experiment's runs"


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("experiment", help="experiment file or name")
    command.add_argument("--format", choices=["table", "json", "csv"], default="table")
    host(command)
    results(command)


def main(options: argparse.Namespace) -> int:
    """Print the metrics of all runs."""
    folder, names = results_of(options)
    runs = load_experiment(folder, names)
    if options.format == "json":
        text = as_json(runs)
    elif options.format == "csv":
        text = as_csv(runs)
    else:
        text = render(runs, Style.of_terminal())
    print(text, end="" if text.endswith("\n") else "\n")
    return 0
