# SPDX-License-Identifier: Apache-2.0
"""`./warpbed report`: write an experiment's report.html."""

from __future__ import annotations

import argparse
from pathlib import Path

from analysis.errors import AnalysisError
from analysis.report import write_report
from analysis.results import FIGURES
from base.errors import WarpbedError
from base.screen import print_table
from testbed.commands.arguments import host, results
from testbed.commands.output import add_format, render
from testbed.commands.prepared import as_written, results_of
from testbed.experiments import prepare

HELP = "write an experiment's report.html, and its figures as SVG and PDF"


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("experiment", help="experiment file or name")
    command.add_argument("--no-figures", action="store_true", help="only the HTML file, no SVG and PDF files beside it")
    add_format(command)
    host(command)
    results(command)


def main(options: argparse.Namespace) -> int:
    folder, names = results_of(options)
    path = Path(options.experiment)
    asked = as_written(prepare(path, host=options.host)) if names is not None else None
    try:
        file = write_report(folder, names=names, asked=asked, figures=not options.no_figures)
    except AnalysisError as error:
        raise WarpbedError(str(error)) from error
    if options.format == "table":
        print(f"report: {file}")
    else:
        figures = (
            [] if options.no_figures else sorted(path for path in (file.parent / FIGURES).glob("*") if path.is_file())
        )
        rows = [
            {"kind": kind, "file": str(path)}
            for kind, path in (("report", file), *(("figure", path) for path in figures))
        ]
        print_table(render(rows, options.format))
    return 0
