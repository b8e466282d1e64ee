# SPDX-License-Identifier: Apache-2.0
"""`./warpbed check`: validate an experiment file and lint its fidelity; runs nothing."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from testbed.commands.output import add_format, render
from testbed.experiments import prepare
from testbed.virtual.kernel import DEFAULT_SERIES

NAME = "check"
HELP = "validate an experiment file and lint its fidelity; runs nothing"


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("experiment", type=Path)
    command.add_argument("--quiet", action="store_true", help="say nothing where all is well")
    command.add_argument("--kernel", action="store_true", help="print the kernel series that the experiment needs")
    add_format(command)


def main(options: argparse.Namespace) -> int:
    """Validate and lint; 1 where a fidelity rule of severity error is broken."""
    prepared = prepare(options.experiment)
    if options.kernel:
        print(DEFAULT_SERIES if prepared.experiment.kernel == "default" else prepared.experiment.kernel)
        return 0
    if options.format != "table":
        found = [{"file": str(options.experiment), **asdict(finding)} for finding in prepared.findings]
        print(render(found, options.format), end="")
        return 1 if prepared.errors else 0
    for finding in prepared.findings:
        if not options.quiet or finding.severity == "error":
            print(f"{options.experiment}: {finding.severity}: {finding.rule}: {finding.message}")
    if not options.quiet:
        cells = len({run.experiment.model_dump_json() for run in prepared.runs})
        print(
            f"{options.experiment}: {len(prepared.runs)} runs ({cells} combinations), {'not ' if prepared.errors else ''}ready to run"
        )
    return 1 if prepared.errors else 0
