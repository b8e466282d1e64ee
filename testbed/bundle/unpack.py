# SPDX-License-Identifier: Apache-2.0
"""Unpack somebody else's bundle. Nothing in it is trusted: names, links, sizes and digests are checked before anything reads it.

What passes is what its manifest says, and no more: whoever made the archive may still have made the numbers up.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import struct
import zipfile
import zlib
from pathlib import Path
from typing import IO

from base.errors import UsageError
from testbed.bundle.manifest import MOST_FILES, NAME, Manifest, parse

MOST_MANIFEST_BYTES = 64 << 20
MOST_DIRECTORY_BYTES = 128 << 20
MOST_TIMES_SMALLER = 1100
"""Deflate makes nothing more than 1032 times smaller; a header that says more lies."""
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
ENCRYPTED = 0x1
CHUNK_BYTES = 1 << 20
END, END_64, LOCATOR_64 = b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07"
END_BYTES, LOCATOR_BYTES, COMMENT_BYTES = 22, 20, 1 << 16


def unpack(bundle: Path, folder: Path, most_bytes: int) -> Manifest:
    """Unpack a bundle into an empty folder of this process's own, and return its manifest.

    most_bytes: of all files together. Raises UsageError for the first thing that is wrong; nothing is written outside of `folder`.
    """
    try:
        with bundle.open("rb") as file:
            _check_directory(bundle, file)
            with zipfile.ZipFile(file) as archive:
                return _unpacked(bundle, archive, folder, most_bytes)
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        struct.error,
        ValueError,
        RuntimeError,
    ) as error:
        raise UsageError(f"{bundle}: not a whole ZIP archive: {error}; fetch it again") from error
    except OSError as error:
        raise UsageError(f"{bundle}: {error.strerror or error}") from error


def _unpacked(bundle: Path, archive: zipfile.ZipFile, folder: Path, most_bytes: int) -> Manifest:
    entries: dict[str, zipfile.ZipInfo] = {}
    for entry in archive.infolist():
        _check_entry(bundle, entry)
        if entry.filename in entries:
            raise UsageError(f"{bundle}: {entry.filename!r} occurs twice")
        entries[entry.filename] = entry
    if NAME not in entries:
        raise UsageError(f"{bundle}: has no {NAME}; ./warpbed bundle makes bundles")
    if entries[NAME].file_size > MOST_MANIFEST_BYTES:
        raise UsageError(f"{bundle}: {NAME} has {entries[NAME].file_size} bytes, at most {MOST_MANIFEST_BYTES}")
    with archive.open(entries[NAME]) as text:
        manifest = parse(text.read(MOST_MANIFEST_BYTES + 1), str(bundle))
    _check_agreement(bundle, manifest, entries)
    total = sum(content.bytes for content in manifest.files.values())
    if total > most_bytes:
        raise UsageError(
            f"{bundle}: {total / 1e9:.2f} GB unpacked, more than {most_bytes / 1e9:.2f} GB; --limit allows more"
        )
    if total > (free := shutil.disk_usage(folder).free):
        raise UsageError(
            f"{bundle}: {total / 1e9:.2f} GB unpacked, but {folder} has {free / 1e9:.2f} GB left; TMPDIR names another place"
        )
    for name, content in manifest.files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        with open(descriptor, "wb") as out, archive.open(entries[name]) as packed:
            seen = _copy(packed, out, content.bytes, f"{bundle}: {name!r}")
        if seen != content.sha256:
            raise UsageError(f"{bundle}: {name!r} is not what {NAME} says: SHA-256 {seen}, not {content.sha256}")
    return manifest


def _check_directory(bundle: Path, file: IO[bytes]) -> None:
    """The archive's directory is read into memory whole: its length has a bound, which is looked up first."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - END_BYTES - COMMENT_BYTES - LOCATOR_BYTES))
    tail = file.read()
    at = tail.rfind(END)
    if at < 0 or len(tail) < at + END_BYTES:
        raise UsageError(f"{bundle}: not a ZIP archive, which a bundle is")
    length = struct.unpack_from("<L", tail, at + 12)[0]
    locator = at - LOCATOR_BYTES
    if locator >= 0 and tail[locator : locator + 4] == LOCATOR_64:
        file.seek(struct.unpack_from("<Q", tail, locator + 8)[0])
        end = file.read(56)
        if len(end) < 56 or end[:4] != END_64:
            raise UsageError(f"{bundle}: not a whole ZIP archive: the end of its directory is missing")
        length = max(length if length != 0xFFFFFFFF else 0, struct.unpack_from("<Q", end, 40)[0])
    if length > MOST_DIRECTORY_BYTES:
        raise UsageError(f"{bundle}: its directory has {length} bytes, at most {MOST_DIRECTORY_BYTES}")
    file.seek(0)


def _check_entry(bundle: Path, entry: zipfile.ZipInfo) -> None:
    name = entry.filename
    mode = entry.external_attr >> 16
    if not name:  # before is_dir(), which raises IndexError for it
        raise UsageError(f"{bundle}: a file in it has no name, which ./warpbed bundle does not make; fetch it again")
    if entry.is_dir() or (stat.S_IFMT(mode) not in (0, stat.S_IFREG)):
        raise UsageError(f"{bundle}: {name[:80]!r} is a folder, link or device; a bundle holds plain files only")
    if entry.flag_bits & ENCRYPTED:
        raise UsageError(f"{bundle}: {name[:80]!r} is encrypted")
    if entry.compress_type not in METHODS:
        raise UsageError(f"{bundle}: {name[:80]!r} is packed by method {entry.compress_type}; allowed: stored, deflate")
    if entry.file_size > MOST_TIMES_SMALLER * max(1, entry.compress_size):
        raise UsageError(
            f"{bundle}: {name[:80]!r} says {entry.file_size} bytes from {entry.compress_size}, which no deflate gives"
        )


def _check_agreement(bundle: Path, manifest: Manifest, entries: dict[str, zipfile.ZipInfo]) -> None:
    """The archive holds what the manifest lists, and the manifest speaks of what the archive holds."""
    if len(entries) > MOST_FILES + 1:
        raise UsageError(f"{bundle}: {len(entries)} files, at most {MOST_FILES}")
    strange = sorted(entries.keys() - manifest.files.keys() - {NAME})
    lacking = sorted(manifest.files.keys() - entries.keys())
    for names, message in (
        (strange, f"is in the archive, but not in {NAME}"),
        (lacking, f"is in {NAME}, but not in the archive"),
    ):
        if names:
            raise UsageError(
                f"{bundle}: {names[0][:80]!r} {message}" + (f" (and {len(names) - 1} more)" if len(names) > 1 else "")
            )
    for name, content in manifest.files.items():
        if entries[name].file_size != content.bytes:
            raise UsageError(f"{bundle}: {name!r} has {entries[name].file_size} bytes, {NAME} says {content.bytes}")
    files = manifest.files
    folders = {name.rpartition("/")[0] for name in files}
    for parent in sorted(
        {"/".join(folder.split("/")[:depth]) for folder in folders for depth in range(1, folder.count("/") + 2)}
    ):
        if parent in files:
            raise UsageError(f"{bundle}: {parent!r} is a file and a folder")
    for one in manifest.experiments:
        if one.file not in files or not one.file.startswith("experiments/") or not one.file.endswith((".yml", ".yaml")):
            raise UsageError(
                f"{bundle}: experiment {one.name} stands in {one.file[:80]!r}, which is no experiment file of the bundle"
            )
        for run in one.runs:
            if f"results/{one.name}/{run}/run.json" not in files:
                raise UsageError(f"{bundle}: run {run[:80]} of {one.name} has no run.json in the bundle")


def _copy(source: IO[bytes], target: IO[bytes], size: int, where: str) -> str:
    """Copy what must be `size` bytes; returns their SHA-256. Stops at the first byte too many, whatever the headers said."""
    digest, seen = hashlib.sha256(), 0
    while chunk := source.read(min(CHUNK_BYTES, size + 1 - seen)):
        seen += len(chunk)
        if seen > size:
            raise UsageError(f"{where} is longer than the {size} bytes that it says")
        digest.update(chunk)
        target.write(chunk)
    return digest.hexdigest()
