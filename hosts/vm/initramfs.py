# SPDX-License-Identifier: Apache-2.0
"""Archives that a kernel unpacks into its first root, in memory: the same files give the same bytes on every machine.

Format: cpio "newc", as the kernel's Documentation/driver-api/early-userspace/buffer-format.rst has it. Owners, times and order are
fixed, so that what a machine does with an archive does not depend on where it was made.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

MAGIC = b"070701"
END = "TRAILER!!!"
ALIGN = 4
GAP = 512
"""Archives that follow one another are kept apart by whole blocks of zeros."""
CHUNK = 1 << 20


class Archive:
    """An archive that is written to a stream."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._at, self._inode = stream, 0, 0
        self._folders: set[str] = set()

    def folder(self, name: str, mode: int = 0o755) -> None:
        """A folder, after those that it lies in."""
        if not name or name in self._folders:
            return
        self.folder(name.rpartition("/")[0])
        self._folders.add(name)
        self._entry(name, stat.S_IFDIR | mode)

    def file(self, name: str, content: Path | bytes, mode: int = 0o644) -> None:
        self.folder(name.rpartition("/")[0])
        if isinstance(content, bytes):
            self._entry(name, stat.S_IFREG | mode, len(content))
            self._data(iter((content,)))
            return
        with content.open("rb") as source:
            self._entry(name, stat.S_IFREG | mode, os.fstat(source.fileno()).st_size)
            self._data(iter(lambda: source.read(CHUNK), b""))

    def link(self, name: str, target: str) -> None:
        self.folder(name.rpartition("/")[0])
        data = os.fsencode(target)
        self._entry(name, stat.S_IFLNK | 0o777, len(data))
        self._data(iter((data,)))

    def device(self, name: str, major: int, minor: int, mode: int = 0o600) -> None:
        """A character device."""
        self.folder(name.rpartition("/")[0])
        self._entry(name, stat.S_IFCHR | mode, device=(major, minor))

    def tree(self, root: Path, left_out: Iterable[str] = ()) -> None:
        """All below a folder, but what is left out (by its path in it); no devices, pipes or sockets."""
        for path in _sorted(root, root, frozenset(left_out)):
            name, found = str(path.relative_to(root)), path.lstat()
            mode = stat.S_IMODE(found.st_mode)
            if stat.S_ISDIR(found.st_mode):
                self.folder(name, mode)
            elif stat.S_ISLNK(found.st_mode):
                self.link(name, os.readlink(path))
            elif stat.S_ISREG(found.st_mode):
                self.file(name, path, mode)

    def end(self) -> None:
        self._entry(END, 0)
        self._write(bytes(-self._at % GAP))

    def _entry(self, name: str, mode: int, size: int = 0, device: tuple[int, int] = (0, 0)) -> None:
        self._inode += 1
        data = os.fsencode(name) + b"\0"
        links = 2 if stat.S_ISDIR(mode) else 1
        #         inode        mode  uid gid links time size  device of the archive  device  length of the name  checksum
        fields = (self._inode, mode, 0, 0, links, 0, size, 0, 0, *device, len(data), 0)
        self._write(MAGIC + b"".join(b"%08X" % field for field in fields) + data)
        self._pad()

    def _data(self, chunks: Iterator[bytes]) -> None:
        for chunk in chunks:
            self._write(chunk)
        self._pad()

    def _pad(self) -> None:
        self._write(bytes(-self._at % ALIGN))

    def _write(self, data: bytes) -> None:
        self._stream.write(data)
        self._at += len(data)


def _sorted(folder: Path, root: Path, left_out: frozenset[str]) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if str(path.relative_to(root)) in left_out:
            continue
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from _sorted(path, root, left_out)


def write(stream: BinaryIO, files: Mapping[str, Path | bytes]) -> None:
    """An archive of files by their absolute paths."""
    archive = Archive(stream)
    for name in sorted(files):
        archive.file(name.lstrip("/"), files[name])
    archive.end()
