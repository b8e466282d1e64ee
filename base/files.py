# SPDX-License-Identifier: Apache-2.0
"""Files and folders that appear whole, stay after a power cut, and are never written through somebody else's link."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

AT_FDCWD = -100
RENAME_EXCHANGE = 2

_libc = ctypes.CDLL(None, use_errno=True)


def replace_bytes(target: Path, content: bytes, mode: int = 0o666) -> None:
    """Give a file new content: whole or not at all, also where power fails; a link in its place is replaced, not followed."""
    descriptor, aside = _aside(target, mode)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            os.replace(aside, target)
    finally:
        aside.unlink(missing_ok=True)
    sync_folder(target.parent)
    remove_left(target.parent, target.name)


def aside_name(name: str) -> str:
    """For what is made under another name than `name` first: nobody can guess it, and `remove_left` knows it."""
    return f".{name}.{secrets.token_hex(8)}"


def remove_left(folder: Path, name: str) -> None:
    """Remove what killed processes have left of `name`, under names of `aside_name`; who still makes one holds its lock."""
    pattern = re.compile(rf"\.{re.escape(name)}\.[0-9a-f]{{16}}")
    with os.scandir(folder) as entries:
        left = [Path(entry.path) for entry in entries if pattern.fullmatch(entry.name)]
    for place in left:
        with contextlib.suppress(OSError), _opened(place) as descriptor:
            if descriptor is None:
                continue
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if stat.S_ISDIR(os.fstat(descriptor).st_mode):
                shutil.rmtree(place, ignore_errors=True)
            else:
                place.unlink()


@contextlib.contextmanager
def folder_aside(folder: Path, name: str) -> Iterator[Path]:
    """A new folder that goes at the end of the block, or, where this process is killed, when the next one is made for `name`."""
    remove_left(folder, name)
    while True:
        fresh = folder / aside_name(name)
        fresh.mkdir()
        try:
            descriptor = os.open(fresh, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:  # somebody took it for a left one before it was locked
            continue
        _lock(descriptor)
        if fresh.exists():  # as above
            break
        os.close(descriptor)
    try:
        yield fresh
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        os.close(descriptor)


def _aside(target: Path, mode: int) -> tuple[int, Path]:
    """A new locked file beside the target."""
    while True:
        aside = target.with_name(aside_name(target.name))
        # O_EXCL: nothing that lies there already is opened
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
        _lock(descriptor)
        if os.fstat(descriptor).st_nlink:  # else somebody took it for a left one before it was locked
            return descriptor, aside
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    with contextlib.suppress(OSError):  # a file system without locks, where nothing that is left is ever taken for such
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def replace_text(target: Path, text: str, mode: int = 0o666) -> None:
    """As `replace_bytes`, in UTF-8."""
    replace_bytes(target, text.encode("utf-8"), mode)


def sync_folder(folder: Path) -> None:
    """Wait until a folder's entries are on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # some network file systems know no fsync of folders
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Make a folder with its parents, if it is not there; its name is on the disk then."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for place in missing:
        sync_folder(place.parent)


def sync_tree(folder: Path) -> None:
    """Wait until a folder with all files and folders in it is on the disk."""
    for place, _, names in os.walk(folder):
        for name in names:
            with _opened(Path(place, name)) as descriptor:
                if descriptor is not None:
                    os.fsync(descriptor)
        sync_folder(Path(place))


def exchange_folders(one: Path, other: Path) -> None:
    """Let two folders of one file system change names in one step. Raises OSError."""
    status = _libc.renameat2(AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE)
    if status != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(one), None, str(other))


@contextlib.contextmanager
def _opened(file: Path) -> Iterator[int | None]:
    """A plain file's descriptor; None for what is none (links are neither followed nor synced)."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO, errno.EACCES):
            raise
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)
