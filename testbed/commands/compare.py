# SPDX-License-Identifier: Apache-2.0
"""`./warpbed compare`: hold an experiment's expectations against what was measured."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from analysis.expectations import check_all
from analysis.results import Run as ResultRun
from analysis.results import load_experiment
from testbed.commands.arguments import results
from testbed.commands.prepared import results_of
from testbed.experiments import Prepared, prepare

NAME = "compare"
HELP = "hold an experiment's expectations against what was measured"


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("experiment", help="experiment file or name")
    results(command)


def main(options: argparse.Namespace) -> int:
    """Expectations against measurements; 1 where one does not hold."""
    folder, names = results_of(options)
    return print_findings(load_experiment(folder, names), prepare(Path(options.experiment)))


def print_findings(runs: Sequence[ResultRun], prepared: Prepared) -> int:
    """Print what became of each expectation; 1 where one does not hold."""
    code = 0
    claims = [e.model_dump(exclude_none=True) for e in prepared.experiment.expectations]
    for finding in check_all(claims, runs):
        claim = finding.expectation
        where = ", ".join(f"{name}={value}" for name, value in claim.where.items())
        print(
            f"{finding.outcome}: {claim.metric} {claim.bound}{f' where {where}' if where else ''}"
            f"{f' ({finding.reason})' if finding.reason else ''}{f' [{claim.source}]' if claim.source else ''}"
        )
        if finding.outcome != "holds":
            code = 1
    return code
