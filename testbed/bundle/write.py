# SPDX-License-Identifier: Apache-2.0
"""Write a bundle: a ZIP archive that appears whole, with the same bytes for the same results."""

from __future__ import annotations

import hashlib
import os
import secrets
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from base.errors import UsageError
from base.files import sync_folder
from base.version import VERSION
from base.watcher import remove_folder, watching
from testbed.bundle import contents, crate
from testbed.bundle.contents import Part, Source
from testbed.bundle.manifest import CRATE, NAME, Content, Manifest, Recorded

CHUNK_BYTES = 1 << 20
PACKED = (".parquet", ".pdf", ".gz", ".png")
"""What does not get smaller."""


def write(target: Path, title: str, parts: Sequence[Part], *, captures: bool, licence: str) -> Manifest:
    """Write the bundle of these experiments to `target`, which must not be there. Raises UsageError."""
    if target.exists() or target.is_symlink():
        raise UsageError(f"{target}: exists already, and bundles are never overwritten; --out names another file")
    with _work(target.parent) as work:
        (work / "figures").mkdir()
        archive = work / "bundle.zip"
        commit = contents.commit()
        with zipfile.ZipFile(archive, "x", allowZip64=True) as out:
            files = {
                source.name: _add(out, source)
                for source in contents.checked(_sources(parts, captures, work / "figures"))
            }
            readme = Source("README.md", _readme(title, parts, licence, commit).encode())
            files[readme.name] = _add(out, readme)
            about = Source(CRATE, crate.description(title, parts, files, licence, commit))
            files[about.name] = _add(out, about)
            manifest = Manifest(
                warpbed_bundle=1, title=title, version=VERSION, commit=commit, captures=captures,
                files=dict(sorted(files.items())),
                experiments=[
                    Recorded(name=part.name, file=part.file, host=part.prepared.experiment.host,
                             runs=[run.path.name for run in part.runs], missing=part.missing)
                    for part in parts
                ],
            )  # fmt: skip
            _add(out, Source(NAME, (manifest.model_dump_json(indent=1) + "\n").encode()))
        with archive.open("rb") as file:
            os.fsync(file.fileno())
        try:
            os.link(archive, target)  # which overwrites nothing
        except FileExistsError as error:
            raise UsageError(f"{target}: has appeared in the meantime; --out names another file") from error
        sync_folder(target.parent)
    return manifest


def _sources(parts: Sequence[Part], captures: bool, work: Path) -> Iterator[Source]:
    yield from contents.surroundings(parts)
    for part in parts:
        yield from contents.files_of(part, captures=captures, work=work)


@contextmanager
def _work(folder: Path) -> Iterator[Path]:
    """A folder beside the archive, which goes with this process however it ends."""
    work = folder.resolve() / f".bundle-{secrets.token_hex(8)}"
    try:
        work.mkdir(mode=0o700)
    except OSError as error:
        raise UsageError(f"{folder}: cannot write there: {error.strerror}; --out names another place") from error
    with watching(remove_folder, str(work), quiet=True):
        yield work


def _add(out: zipfile.ZipFile, source: Source) -> Content:
    """Put a file into the archive; returns what the manifest says of it."""
    entry = zipfile.ZipInfo(source.name, (1980, 1, 1, 0, 0, 0))
    entry.external_attr = 0o100644 << 16
    entry.create_system = 3
    entry.compress_type = zipfile.ZIP_STORED if source.name.endswith(PACKED) else zipfile.ZIP_DEFLATED
    digest, size = hashlib.sha256(), 0
    if isinstance(source.content, Path):
        entry.file_size = source.content.stat().st_size
    with out.open(entry, "w", force_zip64=True) as file:
        for chunk in _chunks(source.content):
            digest.update(chunk)
            size += len(chunk)
            file.write(chunk)
    return Content(bytes=size, sha256=digest.hexdigest())


def _chunks(content: Path | bytes) -> Iterator[bytes]:
    if isinstance(content, bytes):
        yield content
        return
    with content.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk


def _readme(title: str, parts: Sequence[Part], licence: str, commit: str) -> str:
    rows = "".join(f"| {part.name} | `{part.file}` | {len(part.runs)} | {part.missing} |\n" for part in parts)
    origin = f"Made by Warpbed {VERSION}{f', commit {commit}' if commit else ''}."
    return (
        f"# {title}\n\n{origin} `./warpbed rerun` on this archive checks every digest, makes the runs again and says for\n"
        "each figure whether it is the same.\n\n"
        f"| experiment | file | runs | not in the bundle |\n|---|---|---|---|\n{rows}\n"
        "`results/` has run.json, raw files and records, `figures/` what the report shows, `environment/` versions and keys,\n"
        "`sources/` the kernel's modules and patches where they were at hand as they were used, `bundle.json` the SHA-256 of\n"
        f"every file.\n\nResults and figures: {licence}. Files of `sources/kernels`: GPL-2.0-only or as they say. The others: Apache-2.0.\n"
    )
