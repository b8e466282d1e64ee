# SPDX-License-Identifier: Apache-2.0
"""Unpack a tar archive that another machine sends, with bounds on bytes, files and memory: that machine may be a hostile one."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import tarfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol, cast

from base.errors import WarpbedError

LARGEST_FETCH_BYTES = 4 << 30
LARGEST_HEADERS_BYTES = 64 << 10
HEADERS = (LARGEST_HEADERS_BYTES, "of names and attributes before a file")
"""tarfile takes them into memory, as many as the sender likes."""
TRAILER = (1 << 20, "after its end")
"""An archive is padded."""
ANY_NAME = re.compile(r"(?!\.\.?$)[^/\0]+")
"""Of a file in a folder."""


class Readable(Protocol):
    """As much of a binary stream as is needed to unpack it."""

    def read(self, size: int = -1, /) -> bytes:
        """At most `size` bytes; none at the end."""
        ...


class TooLargeError(WarpbedError):
    """More than such a machine has to send; the text says of what."""


@dataclass(frozen=True)
class Limits:
    """What an archive may hold.

    names: of its files
    files: how many entries, of whatever type
    largest: ending of a name → most bytes of such a file; one without an ending of these is bounded by the whole archive's limit
    """

    names: re.Pattern[str] = ANY_NAME
    files: int = 100_000
    largest: Mapping[str, int] = field(default_factory=dict)


class Bounded:
    """A stream of which no more is read than `allow` allows, nor in all more than LARGEST_FETCH_BYTES. Raises TooLargeError."""

    def __init__(self, stream: Readable) -> None:
        self._stream, self._left = stream, LARGEST_FETCH_BYTES
        self.allow(LARGEST_FETCH_BYTES, "")

    def allow(self, size: int, what: str) -> None:
        """So many bytes may follow. what: they are, for the error"""
        self._allowed, self._what = size, f"more than {size >> 10} KiB {what}"

    def read(self, size: int = -1, /) -> bytes:
        chunk = self._stream.read(size)
        self._left -= len(chunk)
        self._allowed -= len(chunk)
        if self._left < 0:
            raise TooLargeError(f"more than {LARGEST_FETCH_BYTES >> 20} MiB")
        if self._allowed < 0:
            raise TooLargeError(self._what)
        return chunk


def unpack(
    stream: Readable,
    folder: Path,
    refuse: Callable[[str], None],
    limits: Limits = Limits(),
    is_compressed: bool = False,
) -> None:
    """Put the plain files of a tar archive into a folder: what a machine sends must not land anywhere else.

    refuse: is given the name of everything that is no plain file, or has another name than limits.names allow
    is_compressed: with gzip; nothing else is tried, since other ways of compressing ask for as much memory as the sender likes
    Raises TooLargeError, tarfile.TarError where it is no whole archive.
    """
    try:
        sent = Bounded(stream)
        files = Bounded(gzip.GzipFile(fileobj=cast(IO[bytes], sent))) if is_compressed else sent
        files.allow(*HEADERS)
        with tarfile.open(fileobj=cast(IO[bytes], files), mode="r|") as archive:
            _unpack(archive, files, folder, refuse, limits)
        if is_compressed:  # whether it came undamaged is told at its end
            sent.allow(*TRAILER)
            files.allow(*TRAILER)
            while files.read(1 << 16):
                pass
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise tarfile.ReadError(str(error)) from error


def _unpack(
    archive: tarfile.TarFile, files: Bounded, folder: Path, refuse: Callable[[str], None], limits: Limits
) -> None:
    count = 0
    while (entry := archive.next()) is not None:
        archive.members = []  # type: ignore[attr-defined] # or it keeps all entries to the end
        archive.pax_headers = {}
        count += 1
        if count > limits.files:
            raise TooLargeError(f"more than {limits.files} files")
        name = entry.name.removeprefix("./")
        if entry.issparse():  # its size is not that of what was sent
            raise tarfile.ReadError(f"{name[:80]!r}: a sparse file")
        largest = min((size for end, size in limits.largest.items() if name.endswith(end)), default=LARGEST_FETCH_BYTES)
        if entry.size > largest:
            raise TooLargeError(f"{name[:80]!r} has {entry.size} bytes, such a file at most {largest}")
        files.allow(entry.size + LARGEST_HEADERS_BYTES, "of a file")
        if entry.isreg() and ANY_NAME.fullmatch(name) and limits.names.fullmatch(name):
            (folder / name).unlink(missing_ok=True)  # a link in its place is replaced, not followed
            with open(folder / name, "xb") as target:
                _copy(archive, entry, target)
        else:
            refuse(entry.name)
            if entry.isreg():
                with open(os.devnull, "wb") as nowhere:
                    _copy(archive, entry, nowhere)
        files.allow(*HEADERS)


def _copy(archive: tarfile.TarFile, entry: tarfile.TarInfo, target: IO[bytes]) -> None:
    content = archive.extractfile(entry)
    assert content is not None, "a plain file has one"
    with content:
        shutil.copyfileobj(content, target)
