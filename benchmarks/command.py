# SPDX-License-Identifier: Apache-2.0
"""The command that executes an experiment file's runs, as benchmarks start it: no play, this interpreter, this checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from base.paths import ROOT


def execute(file: Path, results: Path, *options: str) -> list[str]:
    """The command line, to be started in `ROOT` with `environment()`."""
    return [sys.executable, "-P", "-m", "testbed", "execute", str(file), "--results", str(results), *options]


def environment() -> dict[str, str]:
    """This process's own, and what makes the checkout importable; lines come as they are printed."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}


def executed(file: Path, results: Path, *options: str, before: Sequence[str] = ()) -> None:
    """Execute the runs; `before` starts the command (taskset).

    Raises RuntimeError with what it printed where it ends with an error.
    """
    done = subprocess.run(
        [*before, *execute(file, results, *options)],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{file}: {done.stdout}{done.stderr}")
