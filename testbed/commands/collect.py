# SPDX-License-Identifier: Apache-2.0
"""`./warpbed collect`: make the records, metrics and verdicts of result folders again."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from testbed.errors import UsageError

NAME = "collect"
HELP = "make the records, metrics and verdicts of result folders again"


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("path", type=Path, help="a run's folder or an experiment's")
    command.add_argument(
        "--store", action="store_true", help="then put the runs into the database, as `store load` does"
    )


def main(options: argparse.Namespace) -> int:
    """Make records, metrics and verdicts again, of one run or of all runs of an experiment."""
    from testbed.finish import finish

    path: Path = options.path
    folders = [path] if (path / "run.json").is_file() else sorted(file.parent for file in path.glob("*/run.json"))
    folders = [folder for folder in folders if ".failed-" not in folder.name]
    if not folders:
        raise UsageError(f"{path}: neither a run's folder nor an experiment's with complete runs")
    for folder in folders:
        finish(folder)
        print(folder)
    if options.store:
        from collectors.store import actions

        return actions.load(path, None, sys.stdout)
    return 0
