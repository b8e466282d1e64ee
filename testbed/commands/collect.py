# SPDX-License-Identifier: Apache-2.0
"""`./warpbed collect`: records from captures, or a run's records, metrics and verdict again."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from analysis.errors import AnalysisError
from analysis.results import load_run
from base.errors import UsageError, WarpbedError
from base.screen import print_table
from base.text import clean
from collectors.errors import CollectError, NativeError
from testbed.commands.output import add_format, render

HELP = "rebuild records, metrics and verdicts of result folders, or convert a capture to records"
STDIN = Path("-")


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "path", type=Path, nargs="+", help="a run's folder or an experiment's; or captures (- is standard input)"
    )
    command.add_argument(
        "--store", action="store_true", help="then put the runs into the database, as `store load` does"
    )
    command.add_argument("--out", type=Path, metavar="DIR", help="folder for the records of captures")
    command.add_argument("--interval", type=float, metavar="S", help="captures: width of an interval (default 0.1 s)")
    command.add_argument("--threads", type=int, metavar="N", help="captures: default 2, where there are 2 CPUs")
    add_format(command)
    command.add_argument("--live", action="store_true", help="follow a capture that is still being written to a pipe")


def main(options: argparse.Namespace) -> int:
    """Make records, metrics and verdicts again, of one run or of all runs of an experiment; or records of captures."""
    paths: list[Path] = options.path
    captures = [path for path in paths if path == STDIN or path.is_file()]
    if captures:
        if options.store:
            raise UsageError("--store is for runs; a capture alone has no run that it belongs to")
        return _captures(options, paths, captures)
    for name in ("out", "interval", "threads", "live"):
        if getattr(options, name):
            raise UsageError(f"--{name} is for captures; {paths[0]} is not a file")
    rows, wrong = _folders(paths, named=options.format == "table")
    if rows and options.format != "table":
        print_table(render(rows, options.format))
    if options.store:
        from store import actions

        out = sys.stdout if options.format == "table" else sys.stderr
        for path in paths:
            actions.load(path, None, out)
    if wrong:
        names = ", ".join(str(folder) for folder in wrong)
        raise WarpbedError(f"{len(wrong)} of {len(rows) + len(wrong)} runs could not be collected: {names}")
    return 0


def _captures(options: argparse.Namespace, paths: list[Path], captures: list[Path]) -> int:
    from collectors.pcap.__main__ import main as of_captures

    others = [str(path) for path in paths if path not in captures]
    if others:
        raise UsageError(f"{', '.join(others)}: not a file, as {captures[0]} is; give captures or folders, not both")
    if options.out is None:
        raise UsageError("a capture's records need --out DIR, the folder where they go")
    arguments = [*map(str, captures), "--out", str(options.out)]
    for name in ("interval", "threads"):
        if getattr(options, name) is not None:
            arguments += [f"--{name}={getattr(options, name)}"]
    try:
        return of_captures([*arguments, f"--format={options.format}", *["--live"] * options.live])
    except NativeError as error:
        raise UsageError(str(error)) from error


def _folders(paths: list[Path], *, named: bool) -> tuple[list[dict[str, Any]], list[Path]]:
    """Collect each run again; the rows of those that were, and the folders of those that could not be.

    named: print a run's folder as soon as it is done
    """
    from testbed.captures import DroppedError
    from testbed.finish import finish

    folders = [folder for path in paths for folder in _runs_of(path)]
    rows: list[dict[str, Any]] = []
    wrong: list[Path] = []
    for folder in folders:
        try:
            finish(folder)
        except (CollectError, AnalysisError, UsageError, OSError) as error:
            told = error if isinstance(error, UsageError) else WarpbedError(f"{folder}: {error}")
            if len(folders) == 1:
                raise told from error
            print(told.shown, file=sys.stderr)  # of an experiment, the others can still be collected
            if not isinstance(error, DroppedError):  # whose records are as they were made
                wrong.append(folder)
            continue
        run = load_run(folder)
        reasons = "; ".join(reason.message for reason in run.reasons)
        rows.append({"run": run.run, "verdict": run.standing, "reasons": reasons, "folder": str(folder)})
        if named:
            print(clean(str(folder)), flush=True)
    return rows, wrong


def _runs_of(path: Path) -> list[Path]:
    """A run's folder, or those of an experiment's complete runs. Raises UsageError where there is none."""
    found = [path] if os.path.lexists(path / "run.json") else sorted(file.parent for file in path.glob("*/run.json"))
    folders = [folder for folder in found if ".failed-" not in folder.name]
    if not folders:
        raise UsageError(f"{path}: neither a capture, nor a run's folder, nor an experiment's with complete runs")
    return folders
