# SPDX-License-Identifier: Apache-2.0
"""`./warpbed collect`: records from captures, or a run's records, metrics and verdict again."""

from __future__ import annotations

import argparse
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
    rows = _folders(paths, named=options.format == "table")
    if rows and options.format != "table":
        print_table(render(rows, options.format))
    if not options.store:
        return 0
    from store import actions

    return max(actions.load(path, None, sys.stdout if options.format == "table" else sys.stderr) for path in paths)


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


def _folders(paths: list[Path], *, named: bool) -> list[dict[str, Any]]:
    """Collect each run again; named: print its folder as soon as it is done."""
    from testbed.captures import DroppedError
    from testbed.finish import finish

    folders: list[Path] = []
    for path in paths:
        run_folders = (
            [path] if (path / "run.json").is_file() else sorted(file.parent for file in path.glob("*/run.json"))
        )
        run_folders = [folder for folder in run_folders if ".failed-" not in folder.name]
        if not run_folders:
            raise UsageError(f"{path}: neither a capture, nor a run's folder, nor an experiment's with complete runs")
        folders += run_folders
    rows = []
    for folder in folders:
        try:
            finish(folder)
        except DroppedError as error:  # of an experiment, the others can still be collected
            if len(folders) == 1:
                raise
            print(error.shown, file=sys.stderr)
            continue
        except (CollectError, AnalysisError) as error:
            raise WarpbedError(f"{folder}: {error}") from error
        run = load_run(folder)
        reasons = "; ".join(reason.message for reason in run.reasons)
        rows.append({"run": run.run, "verdict": run.standing, "reasons": reasons, "folder": str(folder)})
        if named:
            print(clean(str(folder)), flush=True)
    return rows
