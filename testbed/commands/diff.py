# SPDX-License-Identifier: Apache-2.0
"""`./warpbed diff`: the first packet and the first record in which two runs differ, and which of their inputs do."""

from __future__ import annotations

import argparse
from pathlib import Path

from analysis.differences.runs import report
from analysis.errors import AnalysisError
from base.errors import UsageError
from base.text import clean

NAME = "diff"
HELP = "the first packet and record in which two runs differ, with both sides around it"


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("first", type=Path, help="a run's folder")
    command.add_argument("second", type=Path, help="another's")


def main(options: argparse.Namespace) -> int:
    """1 where they differ."""
    try:
        lines = report(options.first, options.second)
    except AnalysisError as error:
        raise UsageError(str(error)) from error
    print("\n".join(map(clean, lines)) if lines else "the same packets at the same times, and the same records")
    return 1 if lines else 0
