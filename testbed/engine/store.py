# SPDX-License-Identifier: Apache-2.0
"""Folders as files under any address that fsspec knows: this machine's, SSH, S3, Google's storage.

A folder becomes one archive, whose name nobody else uses, and then a description with its length and SHA-256. Who reads begins with
the description: without it, or where the archive is not what it says, there is nothing. So a folder is there whole or not at all on
every kind of store, also on those that can neither rename nor lock.
"""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from base.errors import UsageError, WarpbedError
from base.watcher import watched_folder

DESCRIPTION = ".json"
CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class Entry:
    """An archive in a store: its name, length and digest, and what its maker says of it."""

    name: str
    bytes: int
    sha256: str
    says: dict[str, Any]


class Store:
    """A place for folders. url: such as file:///srv/runs, ssh://host/path, s3://bucket/path, gs://bucket/path; or a path."""

    def __init__(self, url: str) -> None:
        self.url = url
        try:
            self._fs, self._root = _opened(url)
        except (ImportError, ValueError, OSError) as error:
            raise UsageError(
                f"--store {url}: {error}; an address such as file:///srv/runs, ssh://host/path, s3://bucket/path"
            ) from error

    def put(self, folder: Path, place: str, says: dict[str, Any], *, without: Sequence[str] = ()) -> Entry:
        """Store a folder below `place`, less what is named so in it; the entry is there only once all of it is."""
        name = f"{place}/{uuid.uuid4().hex}.tar"
        with watched_folder("warpbed-store-") as scratch:
            archive = scratch / "folder.tar"
            with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as out:
                out.add(folder, arcname=".", filter=lambda one: None if one.name.removeprefix("./") in without else one)
            entry = Entry(name, archive.stat().st_size, _sha256(archive), says)
            self._fs.makedirs(f"{self._root}/{place}", exist_ok=True)
            self._fs.put_file(str(archive), f"{self._root}/{name}")
        text = json.dumps({"name": entry.name, "bytes": entry.bytes, "sha256": entry.sha256, "says": says})
        self._fs.pipe_file(f"{self._root}/{name}{DESCRIPTION}", text.encode())
        return entry

    def entries(self, place: str) -> list[Entry]:
        """The folders below `place` that are there whole, as far as their descriptions say."""
        folder = f"{self._root}/{place}"
        try:
            self._fs.invalidate_cache()
            files = self._fs.ls(folder, detail=False)
        except OSError:
            if self._is_there(folder):
                raise
            return []
        documents = []
        for file in sorted(str(one) for one in files):
            if file.endswith(f".tar{DESCRIPTION}"):
                try:
                    document = json.loads(self._fs.cat_file(file))
                    documents.append(
                        Entry(
                            f"{place}/{Path(file).name.removesuffix(DESCRIPTION)}",
                            int(document["bytes"]),
                            str(document["sha256"]),
                            dict(document["says"]),
                        )
                    )
                except (OSError, ValueError, KeyError, TypeError):
                    continue  # half written: there is nothing yet
        return documents

    def get(self, entry: Entry, folder: Path, *, trusted: bool = False) -> None:
        """Unpack an entry into a folder that is empty. trusted: links too, of what this user's client has packed.

        Raises WarpbedError where it is not what its description says.
        """
        with watched_folder("warpbed-store-") as scratch:
            archive = scratch / "folder.tar"
            try:
                self._fs.get_file(f"{self._root}/{entry.name}", str(archive))
            except OSError as error:
                raise WarpbedError(f"{self.url}: {entry.name}: {error}") from error
            if (size := archive.stat().st_size) != entry.bytes or _sha256(archive) != entry.sha256:
                raise WarpbedError(
                    f"{self.url}: {entry.name}: {size} bytes that are not what was stored ({entry.bytes} bytes, SHA-256 {entry.sha256})"
                )
            with tarfile.open(archive) as packed:
                if trusted:
                    packed.extractall(folder)  # noqa: S202 (by the digest that the client gave)
                else:
                    _extract(packed, folder)

    def send(self, file: Path, name: str) -> tuple[Any, str]:
        """Store a single file whose name tells its content; returns what a worker reads it by: a file system or "", and a path."""
        path = f"{self._root}/{name}"
        if not self._fs.exists(path):
            self._fs.makedirs(path.rpartition("/")[0], exist_ok=True)
            aside = f"{path}.{uuid.uuid4().hex}"
            self._fs.put_file(str(file), aside)
            self._fs.mv(aside, path)
        return self._fs, path

    def remove(self, entry: Entry) -> None:
        """Take an entry away, its description first."""
        for name in (f"{entry.name}{DESCRIPTION}", entry.name):
            try:
                self._fs.rm_file(f"{self._root}/{name}")
            except OSError:
                if self._is_there(f"{self._root}/{name}"):
                    raise

    def _is_there(self, path: str) -> bool:
        """Asked after an error: for what is not there, kinds of stores raise different ones (Google's through Arrow a plain OSError)."""
        self._fs.invalidate_cache()
        return bool(self._fs.exists(path))


def _opened(url: str) -> tuple[Any, str]:
    """A file system of fsspec, and the path in it. S3 and Google's storage are reached by Arrow, which is there anyway."""
    kind = url.partition("://")[0] if "://" in url else ""
    if kind in ("s3", "gs", "gcs"):
        from fsspec.implementations.arrow import ArrowFSWrapper
        from pyarrow import fs

        system, path = fs.FileSystem.from_uri(url)
        return ArrowFSWrapper(system), path.rstrip("/")
    import fsspec

    system, path = fsspec.core.url_to_fs(url if kind else Path(url).absolute().as_uri())
    return system, str(path).rstrip("/")


def _extract(packed: tarfile.TarFile, folder: Path) -> None:
    """Plain files and folders, downwards only."""
    for member in packed.getmembers():
        target = os.path.normpath(member.name)
        if not (member.isreg() or member.isdir()) or target.startswith(("..", "/")):
            raise WarpbedError(f"{member.name!r}: a stored folder holds plain files only")
        packed.extract(member, folder, set_attrs=False)


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
