# SPDX-License-Identifier: Apache-2.0
"""What has happened in a campaign, on disk before the next step is taken.

    results/<campaign>/.campaign/journal.jsonl   one event a line, only ever added to
    results/<campaign>/.campaign/lock            held by the process that conducts the campaign
    results/<campaign>/.campaign/stop            there while the campaign has been told to stop

The journal says what happened and when; whether a transfer is done is decided by its result folder alone, which appears
by rename, so that no moment of a crash can lose or repeat one.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from base.errors import WarpbedError
from base.files import make_folder, sync_folder

FOLDER = ".campaign"
LOOKS, LOOK_S = 20, 0.05
"""Who asks for a campaign's state holds its lock for a moment, and must not keep it from being conducted."""


class JournalError(WarpbedError):
    """What happened cannot be written down: nothing further may be begun."""


class Journal:
    """The journal of the campaign whose results are in `folder`. `now` gives UTC seconds (a test's clock, or the virtual one)."""

    def __init__(self, folder: Path, now: Callable[[], float] = time.time) -> None:
        self.folder, self._now = folder / FOLDER, now
        self.file = self.folder / "journal.jsonl"

    def add(self, event: str, **facts: Any) -> dict[str, Any]:
        """Write an event and wait until it is on the disk. Raises JournalError."""
        entry = {"time": round(self._now(), 3), "event": event, **facts}
        try:
            self._write(entry)
        except OSError as error:
            raise JournalError(
                f"{self.file}: {error.strerror}; the campaign stops here: make room, and the same command resumes it"
            ) from error
        return entry

    def _write(self, entry: dict[str, Any]) -> None:
        is_new = not self.file.exists()
        make_folder(self.folder)
        line = json.dumps(entry) + "\n"
        with open(self.file, "ab+") as file:
            if file.tell() and not _ends_whole(file):
                line = "\n" + line  # a crash in the middle of a line spoils that one only
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            sync_folder(self.folder)

    def events(self) -> list[dict[str, Any]]:
        """All events in their order; lines that a crash has cut are left out."""
        try:
            lines = self.file.read_text(errors="replace").splitlines()
        except FileNotFoundError:
            return []
        return [entry for line in lines if (entry := _parsed(line)) is not None]

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the campaign: only one process conducts it. Raises WarpbedError where another one does."""
        make_folder(self.folder)
        with open(self.folder / "lock", "a") as lock:
            for attempt in range(LOOKS):
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError as error:
                    if attempt == LOOKS - 1:
                        raise WarpbedError(
                            f"{self.folder}: another process conducts this campaign; `campaign status` shows it"
                        ) from error
                time.sleep(LOOK_S)
            yield

    def is_held(self) -> bool:
        """Whether a process conducts the campaign right now."""
        try:
            with open(self.folder / "lock") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    @property
    def stop_file(self) -> Path:
        return self.folder / "stop"


def _ends_whole(file: Any) -> bool:
    file.seek(-1, os.SEEK_END)
    return bool(file.read(1) == b"\n")


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return (
        entry if isinstance(entry, dict) and isinstance(entry.get("time"), int | float) and "event" in entry else None
    )
