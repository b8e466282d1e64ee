# SPDX-License-Identifier: Apache-2.0
"""What has happened in a campaign, on disk before the next step is taken.

    results/<campaign>/.campaign/journal.jsonl   one event a line, only ever added to
    results/<campaign>/.campaign/lock            held by the process that conducts the campaign
    results/<campaign>/.campaign/stop            there while the campaign has been told to stop

The journal says what happened and when; whether a transfer is done is decided by its result folder alone, which appears
by rename, so that no moment of a crash can lose or repeat one.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from base.errors import UsageError, WarpbedError
from base.files import make_folder

FOLDER = ".campaign"
LARGEST_BYTES = 256 << 20
LATEST_S = 1e11
"""No journal is that late; later ones (the year 5138) are no times of this program's."""
LOOKS, LOOK_S = 20, 0.05
"""Who asks for a campaign's state holds its lock for a moment, and must not keep it from being conducted."""


class JournalError(WarpbedError):
    """What happened cannot be written down: nothing further may be begun.

    is_full: whether room on the disk would help
    """

    def __init__(self, text: str, is_full: bool = False) -> None:
        super().__init__(text)
        self.is_full = is_full


class Journal:
    """The journal of the campaign whose results are in `folder`. `now` gives UTC seconds (a test's clock, or the virtual one).

    The results may have come from somebody else: a link, or anything but a plain file, in the place of one of these files or
    of their folder is refused (UsageError), so that no file of the user's elsewhere is written, locked or waited for.
    """

    def __init__(self, folder: Path, now: Callable[[], float] = time.time) -> None:
        self.folder, self._now = folder / FOLDER, now
        self.file = self.folder / "journal.jsonl"

    def add(self, event: str, **facts: Any) -> dict[str, Any]:
        """Write an event and wait until it is on the disk. Raises JournalError."""
        entry = {"time": round(self._now(), 3), "event": event, **facts}
        line = json.dumps(entry).encode() + b"\n"
        try:
            self._write(line)
        except OSError as error:
            raise JournalError(
                f"{self.file}: {error.strerror}; the campaign stops here: make room, and the same command resumes it",
                error.errno in (errno.ENOSPC, errno.EDQUOT),
            ) from error
        return entry

    def _write(self, line: bytes) -> None:
        self._make()
        with self._opened("journal.jsonl", os.O_RDWR | os.O_APPEND | os.O_CREAT) as (file, folder):
            size = os.fstat(file).st_size
            if size and os.pread(file, 1, size - 1) != b"\n":
                line = b"\n" + line  # a crash in the middle of a line spoils that one only
            try:
                _write_all(file, line)
                os.fsync(file)
            except OSError:
                with contextlib.suppress(OSError):  # what is added again must not be there twice
                    os.ftruncate(file, size)
                raise
            if not size:
                with contextlib.suppress(OSError):  # some network file systems know no fsync of folders
                    os.fsync(folder)

    def events(self) -> list[dict[str, Any]]:
        """All events in their order; lines that a crash has cut, or that nothing of ours writes, are left out."""
        try:
            with self._opened("journal.jsonl", os.O_RDONLY) as (file, _):
                if os.fstat(file).st_size > LARGEST_BYTES:
                    raise UsageError(f"{self.file}: larger than {LARGEST_BYTES >> 20} MiB; no campaign's journal is")
                with open(file, "rb", closefd=False) as reader:
                    text = reader.read()
        except FileNotFoundError:
            return []
        lines = text.decode(errors="replace").splitlines()
        return [entry for line in lines if (entry := _parsed(line)) is not None]

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the campaign: only one process conducts it. Raises WarpbedError where another one does."""
        self._make()
        with self._opened("lock", os.O_RDWR | os.O_CREAT) as (lock, _):
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
            with self._opened("lock", os.O_RDONLY) as (lock, _):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def stop(self) -> None:
        """Tell whoever conducts the campaign to end it."""
        with self._opened("stop", os.O_RDWR | os.O_CREAT):
            pass

    def resume(self) -> None:
        """Take back what `stop` has told."""
        with contextlib.suppress(FileNotFoundError), self._folder() as folder:
            os.unlink("stop", dir_fd=folder)

    def is_stopped(self) -> bool:
        """Whether the campaign has been told to end."""
        return os.path.lexists(self.folder / "stop")

    def _make(self) -> None:
        try:
            make_folder(self.folder)
        except FileExistsError as error:
            raise _in_the_way(self.folder, "folder") from error

    @contextmanager
    def _folder(self) -> Iterator[int]:
        """The folder's descriptor. Raises UsageError where it is none, FileNotFoundError where nothing is there."""
        try:
            folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError as error:
            if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                raise
            raise _in_the_way(self.folder, "folder") from error
        try:
            yield folder
        finally:
            os.close(folder)

    @contextmanager
    def _opened(self, name: str, flags: int) -> Iterator[tuple[int, int]]:
        """The descriptors of one of the folder's plain files, and of the folder. Raises as `_folder` does."""
        with self._folder() as folder:
            try:  # O_NONBLOCK: a named pipe is not waited for
                file = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666, dir_fd=folder)
            except OSError as error:
                if error.errno not in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
                    raise
                raise _in_the_way(self.folder / name, "file") from error
            try:
                if not stat.S_ISREG(os.fstat(file).st_mode):
                    raise _in_the_way(self.folder / name, "file")
                yield file, folder
            finally:
                os.close(file)


def _write_all(file: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(file, left) :]


def _in_the_way(place: Path, kind: str) -> UsageError:
    return UsageError(f"{place}: is no plain {kind}; remove it, and look where these results came from")


KINDS: Mapping[str, type] = {"event": str, "transfer": str, "reason": str, "run": int, "attempt": int, "bytes": int}
TRANSFER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""A transfer's id, which is the name of its run's folder."""
NEEDED: Mapping[str, tuple[str, ...]] = {
    "started": ("transfer", "attempt", "bytes"),
    "failed": ("transfer", "attempt"),
    "abandoned": ("transfer", "attempt"),
    "kept": ("transfer", "attempt"),
    "done": ("transfer",),
    "missing": ("transfer",),
}


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entry, dict) or "event" not in entry or not _is_time(entry.get("time")):
        return None
    wrong = any(name in entry and type(entry[name]) is not kind for name, kind in KINDS.items())
    lacks = any(name not in entry for name in NEEDED.get(str(entry["event"]), ()))
    if wrong or lacks or not TRANSFER.fullmatch(entry.get("transfer", "x")):
        return None
    return entry


def _is_time(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LATEST_S
