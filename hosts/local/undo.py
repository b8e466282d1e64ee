# SPDX-License-Identifier: Apache-2.0
"""Undo what a run changes outside its own namespaces, also when the run and this program are killed.

Each step is written to the list before the change is made. A watcher (base.watcher) takes the steps back, last one first, when
the run ends, however that came about. Where it was killed too, the next run does it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from base.watcher import watching
from plan.console import RUN_FOLDER

FOLDER = Path(RUN_FOLDER)
HELD_S = 20.0
Step = list[str]


class Undo:
    """The list of one run. `add` before each change."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._steps: list[Step] = []

    def add(self, *step: str) -> None:
        """Remember a step: write FILE VALUE, rmdir PATH, umount PATH, or modules NAME… (those that were loaded before)."""
        self._steps.append(list(step))
        fresh = self._file.with_suffix(".new")
        fresh.write_text(json.dumps(self._steps))
        fresh.rename(self._file)


class BusyError(Exception):
    """Another run is in real time on this machine."""


@contextlib.contextmanager
def undoing(folder: Path = FOLDER) -> Iterator[Undo]:
    """A list that is taken back at the end of the body, or of this process.

    Raises BusyError while another one is in use.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "undo.json"
    with open(folder / "lock", "wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise BusyError from error
        take_back(str(file))
        # the watcher holds the lock as long as it lives
        with watching(take_back, str(file), pass_fds=[lock.fileno()]):
            yield Undo(file)


def take_back(list_file: str) -> None:
    """Take all steps of a list back; a step that fails does not keep the others from it."""
    file = Path(list_file)
    try:
        steps: list[Step] = json.loads(file.read_text())
    except (OSError, ValueError):
        return
    for kind, *arguments in reversed(steps):
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            if kind == "write":
                Path(arguments[0]).write_text(arguments[1])
            elif kind == "rmdir":
                _remove(arguments[0])
            elif kind == "umount":
                subprocess.run(["umount", arguments[0]], stdin=subprocess.DEVNULL, capture_output=True, timeout=HELD_S)
            elif kind == "modules":
                _unload(set(arguments))
    file.unlink(missing_ok=True)


def _remove(folder: str) -> None:
    """Remove a folder that killed processes may hold for a moment yet (a trace instance)."""
    until = time.monotonic() + HELD_S
    while os.path.isdir(folder):
        try:
            os.rmdir(folder)
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def loaded_modules() -> list[str]:
    """Names of the loaded modules, last one first; none on a kernel without modules."""
    try:
        return [line.split()[0] for line in Path("/proc/modules").read_text().splitlines()]
    except OSError:
        return []


def _unload(before: set[str]) -> None:
    """Unload what was loaded since, users before what they use; what somebody else uses by now stays."""
    for _ in range(3):
        for name in loaded_modules():
            if name not in before:
                subprocess.run(["rmmod", name], stdin=subprocess.DEVNULL, capture_output=True, timeout=HELD_S)
