# SPDX-License-Identifier: Apache-2.0
"""Commands of the checkout's `./warpbed` from Python: what runs, builds or writes into the checkout goes through its entry script.

A command ends with the Python that called it: the end of its standard input is its sign to stop.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from base.errors import UsageError, WarpbedError
from testbed.commands.prepared import answered_ids, kind_of
from testbed.experiments import prepare
from testbed.results import Results
from testbed.selection import select
from warpbed import _place
from warpbed.experiment import RESULTS, Experiment, _file, _loaded
from warpbed.table import Table

Say = Callable[[str], object]
LAST_LINES = 20
PATIENCE_S = 60.0


def run(
    experiment: str | Path,
    *,
    only: str = "",
    seed: int = 0,
    jobs: int = 0,
    host: str | None = None,
    results: str | Path | None = None,
    options: Sequence[str] = (),
    say: Say | None = print,
) -> Experiment:
    """Execute the runs of an experiment file that are missing, as `./warpbed run` does; returns the runs that were asked for.

    only, seed, jobs, host: as the command's options of these names; options: further ones, such as ["--engine", "dask"]
    results: where results are, by default `results/` in the checkout
    say: gets each line that the command prints; None: nobody does

    A run that fails is among the runs, and says why. Raises UsageError where nothing was started, WarpbedError where nothing came of it.
    """
    file = _file(Path(experiment)).resolve()
    base = Path(results).resolve() if results is not None else _place.checkout() / RESULTS
    arguments = ["run", str(file), "--results", str(base), *options]
    arguments += [f"--only={only}"] if only else []
    arguments += [f"--seed={seed}"] if seed else []
    arguments += [f"--jobs={jobs}"] if jobs else []
    arguments += [f"--host={host}"] if host else []
    code, lines = _called(arguments, say)
    asked = prepare(file, seed or None, host)
    chosen = {id(one) for one in select(asked.runs, only)}
    pairs = [pair for pair in zip(asked.runs, asked.plans, strict=True) if id(pair[0]) in chosen]
    some = dataclasses.replace(asked, runs=[one for one, _ in pairs], plans=[plan for _, plan in pairs])
    store = Results(base, asked.experiment.name)
    names = answered_ids(some, kind_of(some, Namespace(host=host)), store)
    if not store.folder.is_dir():
        raise _failure(arguments, code, lines)
    loaded = _loaded(store.folder, names, file)
    if not loaded.runs:
        raise _failure(arguments, code, lines)
    return loaded


def reproduce(*what: str, execute: bool = True, within: str = "", say: Say | None = print) -> Table:
    """What becomes of theses, or of entries of theirs ("kato2012", "ho2008-fig5.3"), as `./warpbed reproduce` decides it.

    execute: run what is missing first; within: begin only experiments that end within this time, such as "10m"

    A row per entry: entry, title, comparable, outcome, explained, reason, decided_by, evidence (JSON).
    """
    arguments = ["reproduce", *what, "--format=json"]
    arguments += [] if execute else ["--no-run"]
    arguments += [f"--within={within}"] if within else []
    text = command(*arguments, say=say, allowed=(0, 1))
    rows: list[dict[str, Any]] = json.loads(text)
    return Table.of([{name: value for name, value in row.items() if name not in ("where", "open")} for row in rows])


def command(*arguments: str | Path, say: Say | None = None, allowed: Sequence[int] = (0,)) -> str:
    """Call any command of the checkout's `./warpbed` and return what it wrote to standard output.

    say: gets each line of standard error while it works. Raises UsageError where the command ends with 2, WarpbedError where it
    ends with another code that is not `allowed`.
    """
    argv = [str(argument) for argument in arguments]
    code, lines = _called(argv, say, apart=True)
    if code not in allowed:
        raise _failure(argv, code, lines)
    return "".join(f"{line}\n" for line in lines)


def _called(arguments: Sequence[str], say: Say | None, *, apart: bool = False) -> tuple[int, list[str]]:
    """Exit code and lines of a command. apart: its standard error is told and not returned, unless it fails."""
    root = _place.checkout()
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONHOME", "PYTHONPATH")}
    environment |= {"WARPBED_STOP_AT_EOF": "1", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [str(root / "warpbed"), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if apart else subprocess.STDOUT, text=True, env=environment, errors="replace",
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    lines: list[str] = []
    try:
        if apart:
            out, err = process.communicate()
            for line in err.splitlines():
                _tell(say, line)
            lines = out.splitlines() if process.returncode in (0, 1) else [*out.splitlines(), *err.splitlines()]
        else:
            for line in process.stdout:
                lines.append(line.rstrip("\n"))
                _tell(say, lines[-1])
    except BaseException:
        _stop(process)
        raise
    finally:
        process.stdin.close()
    return process.wait(), lines


def _tell(say: Say | None, line: str) -> None:
    if say is not None:
        say(line)


def _stop(process: subprocess.Popen[str]) -> None:
    """Let a command undo what it began; it is killed only where it does not end."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _failure(arguments: Sequence[str], code: int, lines: Sequence[str]) -> WarpbedError:
    output = "\n".join(lines[-LAST_LINES:])
    kind = UsageError if code == UsageError.exit_code else WarpbedError
    return kind(f"./warpbed {' '.join(arguments)} ended with {code}:\n{output}")
