# SPDX-License-Identifier: Apache-2.0
"""The cache outside the checkout: locks, folders that appear by rename, remembered hashes.

Everything in it can be deleted at any time.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from base.errors import WarpbedError

if TYPE_CHECKING:
    from collections.abc import Iterator

ASIDE = ".aside-"
LOCKS = ".locks"
PATIENCE_S = 3600.0
"""How long another process may hold what this one needs: longer than any build takes."""
NOTICE_S = 5.0
"""After so long the user hears what is waited for."""
LOOK_S = 0.05


@contextlib.contextmanager
def locked(path: Path, *, wait: bool = True) -> Iterator[int | None]:
    """Hold an exclusive lock on `path` and give its descriptor, or None if it is held elsewhere and `wait` is false.

    Pass the descriptor on to long-running children: the lock then outlives a killed owner until they are gone too.
    Raises WarpbedError where it does not become free.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise WarpbedError(f"cannot write the cache: {error}\nWARPBED_CACHE sets another folder") from error
    try:
        if wait:
            _wait_for(descriptor, path)
        yield descriptor if wait or _take(descriptor) else None
    finally:
        os.close(descriptor)


def _take(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _wait_for(descriptor: int, path: Path) -> None:
    """Take the lock once it is free; says what is waited for where that takes some time, and gives up in the end."""
    begun_s, is_told = time.monotonic(), False
    while not _take(descriptor):
        waited_s = time.monotonic() - begun_s
        if waited_s > PATIENCE_S:
            message = f"{path}: still held after {waited_s:.0f} s by {_holder(descriptor)}"
            raise WarpbedError(f"{message}; end that process where it makes no progress, then try again")
        if waited_s > NOTICE_S and not is_told:
            is_told = True
            print(f"waiting for {path}, which is held by {_holder(descriptor)}", file=sys.stderr, flush=True)
        time.sleep(LOOK_S)


def _holder(descriptor: int) -> str:
    """Who holds the lock of an open file, as the kernel tells it."""
    wanted = f":{os.fstat(descriptor).st_ino}"
    with contextlib.suppress(OSError, IndexError):
        for line in Path("/proc/locks").read_text().splitlines():
            fields = line.split()  # 1: FLOCK ADVISORY WRITE <process> <major>:<minor>:<inode> 0 EOF
            if fields[1] == "FLOCK" and fields[5].endswith(wanted):
                return _named(int(fields[4]))
    return "another process"


def _named(pid: int) -> str:
    try:
        return f"process {pid} ({Path(f'/proc/{pid}/comm').read_text().strip()})"
    except OSError:
        return f"what process {pid} has started, which has ended itself"


@contextlib.contextmanager
def aside(final: Path, *, marker: str) -> Iterator[tuple[Path, int] | None]:
    """Give a folder to fill and the lock's descriptor; at the end the folder becomes `final` in one step.

    None if `final` with its `marker` is there already, perhaps made by another process while this one waited.
    Folders whose owners were killed are removed first.
    """
    with locked(_lock_of(final.parent, final.name)) as descriptor:
        assert descriptor is not None  # since it waited
        if (final / marker).exists():
            yield None
            return
        remove(final)
        remove_orphans(final.parent)
        work = final.parent / f"{ASIDE}{final.name}"
        remove(work)
        work.mkdir(mode=0o755)
        try:
            yield work, descriptor
            work.rename(final)
        finally:
            remove(work)


def remove_orphans(parent: Path) -> None:
    """Remove the aside folders in `parent` whose owner no longer lives."""
    for work in parent.glob(f"{ASIDE}*"):
        with locked(_lock_of(parent, work.name.removeprefix(ASIDE)), wait=False) as descriptor:
            if descriptor is not None:
                remove(work)


def remove(folder: Path) -> None:
    """Remove a folder that may not be there."""
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(folder)


def used(entry: Path) -> Path:
    """Note that an entry of the cache is in use, by its time of change, for `kernels.upkeep`; gives it back.

    A cache that this user cannot write stays as it is.
    """
    with contextlib.suppress(OSError):
        os.utime(entry)
    return entry


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest(value: object) -> str:
    """The SHA-256 of a value that JSON can hold."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def recall(cache: Path, question: object) -> dict[str, Any] | None:
    """What was remembered for `question`, so that 160 MB are not hashed again at every start."""
    try:
        answer = json.loads(_memo(cache, question).read_text())
    except (OSError, ValueError):
        return None
    return answer if isinstance(answer, dict) else None


def remember(cache: Path, question: object, answer: dict[str, Any]) -> None:
    """Keep `answer` for the next `recall`. A cache that cannot be written costs time only."""
    memo = _memo(cache, question)
    with contextlib.suppress(OSError):
        memo.parent.mkdir(parents=True, exist_ok=True)
        new = memo.with_suffix(f".{os.getpid()}")
        new.write_text(json.dumps(answer))
        new.replace(memo)


def _memo(cache: Path, question: object) -> Path:
    return cache / "sources" / ".known" / f"{digest(question)[:32]}.json"


def _lock_of(parent: Path, name: str) -> Path:
    return parent / LOCKS / name
