# SPDX-License-Identifier: Apache-2.0
"""Result folders: made aside, named when complete, never overwritten, never left half.

results/<experiment>/<run-id>/              a complete run
results/<experiment>/<run-id>.failed-<n>/   a run that gave no result, kept for its logs
results/.aside/<unique>/                    a run that is being made; its maker holds a lock on .aside/<unique>.lock
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from analysis.results import FORMAT, other_format
from base.errors import UsageError, WarpbedError

ASIDE = ".aside"


class Results:
    """The results of one experiment."""

    def __init__(self, base: Path, experiment: str) -> None:
        self.base, self.folder = base, base / experiment

    def path(self, run_id: str) -> Path:
        return self.folder / run_id

    def is_complete(self, run_id: str) -> bool:
        return (self.path(run_id) / "run.json").is_file()

    def is_begun(self, run_id: str) -> bool:
        """Whether it was done, or tried and failed."""
        return self.path(run_id).is_dir() or (self.folder / f"{run_id}.failed-1").is_dir()

    @contextlib.contextmanager
    def aside(self) -> Iterator[Path]:
        """A folder to make a run in; whatever is still in it at the end is removed."""
        root = self.base / ASIDE
        root.mkdir(parents=True, exist_ok=True)
        folder = root / uuid.uuid4().hex
        lock = folder.with_suffix(".lock")
        with open(lock, "w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            folder.mkdir()
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)
                lock.unlink(missing_ok=True)
                with contextlib.suppress(OSError):
                    root.rmdir()

    def publish(self, folder: Path, run_id: str) -> Path:
        """Give a complete run its final name. Where another process was faster, its run stays."""
        final = self.path(run_id)
        final.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(OSError):
            os.rename(folder, final)
            return final
        if self.is_complete(run_id):
            return final
        raise WarpbedError(f"{final}: is there without run.json and is not a run; move it away and start again")

    def publish_failed(self, folder: Path, run_id: str) -> Path:
        """Keep what a failed run left, under a name that says so."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for number in range(1, 10_000):
            final = self.folder / f"{run_id}.failed-{number}"
            if not final.exists():
                os.rename(folder, final)
                return final
        raise WarpbedError(f"{self.folder}: {run_id} has failed 9999 times; remove its failed folders")


def read_run(file: Path) -> dict[str, Any]:
    """One run.json.

    Raises UsageError where it is not one of this version.
    """
    try:
        run: dict[str, Any] = json.loads(file.read_text())
    except ValueError as error:
        raise UsageError(f"{file}: not JSON ({error}); remove the folder and run the experiment again") from error
    if run.get("format") != FORMAT:
        raise UsageError(f"{file}: {other_format(run.get('format'))}")
    return run


def purge_aside(base: Path) -> int:
    """Remove what killed processes left aside; returns how many folders. Those in use are left alone."""
    root, removed = base / ASIDE, 0
    if not root.is_dir():
        return 0
    for folder in [entry for entry in root.iterdir() if entry.is_dir()]:
        lock = folder.with_suffix(".lock")
        with open(lock, "a") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            shutil.rmtree(folder, ignore_errors=True)
            lock.unlink(missing_ok=True)
            removed += 1
    for lock in root.glob("*.lock"):
        if not lock.with_suffix("").exists():
            with open(lock, "a") as held, contextlib.suppress(BlockingIOError):
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                lock.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        root.rmdir()
    return removed
