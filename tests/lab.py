# SPDX-License-Identifier: Apache-2.0
"""Small experiments for the tests, and how they are executed."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from collectors import reading
from collectors.compressed import CAPTURES, SUFFIX, opened
from testbed import cli

ROOT = Path(__file__).resolve().parents[1]

# One cubic flow of five seconds: 20 Mbit/s, 20 ms RTT and a bit, a buffer of about one BDP.
SMALL = """\
warpbed: 1
name: small
title: One short flow
duration: 5s
topology:
  name: dumbbell
  params: {rate: 20mbit, delay: 9ms, buffer: 40p, access_rate: 1gbit, access_delay: 500us}
flows:
  - {name: f1, cca: cubic, from: s1, to: d1}
"""


def write(folder: Path, text: str, name: str = "experiment.yml") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def command(*arguments: str | Path, program: str = "testbed") -> list[str]:
    """`./warpbed` without its environment's start-up: the tests run inside that environment already."""
    return [sys.executable, "-P", "-m", program, *map(str, arguments)]


def warpbed(
    *arguments: str | Path,
    code: int = 0,
    timeout_s: float = 1500,
    environment: dict[str, str] | None = None,
    program: str = "testbed",
) -> str:
    """Run a command to its end, check its exit code and return all that it printed."""
    done = subprocess.run(
        command(*arguments, program=program),
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=timeout_s,
        env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})},
        stdin=subprocess.DEVNULL,
    )
    printed = done.stdout + done.stderr
    assert done.returncode == code, f"exit code {done.returncode}, expected {code}:\n{printed}"
    return printed


def inside(*arguments: str | Path, code: int = 0) -> str:
    """As `warpbed`, in this process: for what a command says, where the start of a Python would take longer than all that it does."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), contextlib.chdir(ROOT):
        try:
            ended: object = cli.main([str(argument) for argument in arguments])
        except SystemExit as error:  # of argparse
            ended = error.code
    assert ended == code, f"exit code {ended}, expected {code}:\n{printed.getvalue()}"
    return printed.getvalue()


def execute(
    folder: Path,
    text: str,
    *arguments: str,
    code: int = 0,
    environment: dict[str, str] | None = None,
    timeout_s: float = 1500,
    program: str = "testbed",
) -> Path:
    """Execute an experiment's text; returns the folder of its results."""
    file = write(folder, text)
    warpbed(
        "execute",
        file,
        "--results",
        folder / "results",
        *arguments,
        code=code,
        environment=environment,
        timeout_s=timeout_s,
        program=program,
    )
    return only_folder(folder / "results")


def only_folder(results: Path) -> Path:
    (folder,) = [entry for entry in results.iterdir() if entry.is_dir() and not entry.name.startswith(".")]
    return folder


def runs(folder: Path) -> list[dict[str, Any]]:
    """run.json of every complete run, in the order of the folders' names, with `path`."""
    files = sorted(file for file in folder.glob("*/run.json") if ".failed-" not in str(file))
    return [{**json.loads(file.read_text()), "path": file.parent} for file in files]


def digests(run: Path) -> dict[str, str]:
    """SHA-256 of every capture's content and every record of a run."""
    files = sorted(
        file for pattern in (*(f"raw/{one}" for one in CAPTURES), "records/*.parquet") for file in run.glob(pattern)
    )
    sums = {}
    for file in files:
        with opened(file) as content:
            sums[file.name.removesuffix(SUFFIX)] = hashlib.sha256(content.read()).hexdigest()
    return sums


def table(run: Path, kind: str) -> dict[str, Any]:
    """A run's records as columns."""
    columns: dict[str, Any] = {}
    data = reading.table(run / "records" / f"{kind}.parquet")
    for name in data.column_names:
        columns[name] = data[name].to_numpy()
    return columns


def processes_with(text: str) -> list[str]:
    """Command lines, of processes other than this one's, that hold a text."""
    pids = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in line and entry.parent.name != str(os.getpid()):
            pids.append(line)
    return pids


def plan(run: dict[str, Any]) -> dict[str, Any]:
    """What a run's agent was told."""
    orders: dict[str, Any] = json.loads((run["path"] / "raw/plan.json").read_text())
    return orders
