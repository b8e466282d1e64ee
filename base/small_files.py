# SPDX-License-Identifier: Apache-2.0
"""Files of a folder that may come from somebody else: read only where they are plain files of a bearable size.

A pipe would be waited for without end, a device or a file with a hole of gigabytes would fill the memory, and a link shows what was
never meant to be shown. What is refused is an OSError or a ValueError, as for any other file that cannot be read.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

MOST_BYTES = 64 << 20
"""Of a file that is read whole: a hundred times the largest run.json, plan or result of a program that tests and benchmarks make."""
SAMPLES_BYTES = 2 << 30
"""Of a run's samples, which are read whole too."""
MOST_VALUES = 4_000_000
"""Of a JSON text, by its commas and opening brackets: each becomes an object of 30 to 90 bytes."""


class RefusedFileError(OSError):
    """Something that is no plain file, or a too large one. The text is made for a user: the file, what it is, the remedy."""

    def __str__(self) -> str:
        return f"{self.filename}: {self.strerror}"


def read_small(file: Path, most: int = MOST_BYTES) -> bytes:
    """The content of a plain file of at most `most` bytes. Raises OSError."""
    descriptor = opened(file)
    try:
        content = bytearray()
        while len(content) <= most and (part := os.read(descriptor, min(most + 1 - len(content), 1 << 20))):
            content += part
        if len(content) > most:
            raise _too_large(file, os.fstat(descriptor).st_size, most)
    finally:
        os.close(descriptor)
    return bytes(content)


def small_text(file: Path, most: int = MOST_BYTES) -> str:
    """The text of a plain file. Raises OSError, or ValueError where it is not UTF-8."""
    return read_small(file, most).decode("utf-8")


def small_json(file: Path, most: int = MOST_BYTES) -> Any:
    """The value of a JSON file. Raises OSError, or ValueError where it is not JSON or is nested too deeply."""
    return parsed(read_small(file, most))


def parsed(text: str | bytes, constant: Callable[[str], Any] | None = None) -> Any:
    """The value of a JSON text. Raises ValueError, also for what would take too much memory or nesting.

    constant: what becomes of NaN and Infinity
    """
    if len(text) > MOST_VALUES and (values := _values(text)) > MOST_VALUES:
        raise ValueError(f"about {values} values, at most {MOST_VALUES} are read")
    try:
        return json.loads(text, parse_constant=constant)
    except RecursionError:
        raise ValueError("too many brackets within one another") from None


def _values(text: str | bytes) -> int:
    if isinstance(text, bytes):
        return sum(text.count(mark) for mark in (b",", b"[", b"{"))
    return sum(text.count(mark) for mark in ",[{")


def require_plain(file: Path, most: int | None = None) -> int:
    """The size of a plain file that something else is going to open. Raises OSError for anything else."""
    status = os.lstat(file)
    _check(file, status.st_mode)
    if most is not None and status.st_size > most:
        raise _too_large(file, status.st_size, most)
    return status.st_size


def opened(file: Path) -> int:
    """The descriptor of a plain file, to be read. Raises OSError, RefusedFileError for anything else."""
    try:
        # O_NONBLOCK: a pipe without a writer is not waited for
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a link; a socket
            _check(file, os.lstat(file).st_mode)
        raise
    try:
        status = os.fstat(descriptor)
        _check(file, status.st_mode)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _check(file: Path, mode: int) -> None:
    if stat.S_ISREG(mode):
        return
    kinds = {stat.S_IFLNK: "a link", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFDIR: "a folder"}
    kind = kinds.get(stat.S_IFMT(mode), "a device")
    raise RefusedFileError(
        errno.EINVAL, f"is {kind}, not a plain file; look where this folder came from, and remove it", str(file)
    )


def _too_large(file: Path, size: int, most: int) -> RefusedFileError:
    message = (
        f"{max(size, most + 1)} bytes, at most {most} are read; no run writes such a file, look where it came from"
    )
    return RefusedFileError(errno.EFBIG, message, str(file))
