# SPDX-License-Identifier: Apache-2.0
"""What becomes of a run's captures and samples once they have been read: run.json tells of each, and keeps its digest."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from base.errors import UsageError
from collectors import compressed
from schema.keep import is_kept

KEY = "captures"
FILE_HEADER, RECORD_HEADER = 24, 16
GROWING = ("*.pcap", "tcp_probe.bin", "sockets.bin", "queues.bin")
"""What grows with packets and time. Samples go with the captures: without these no records could be made from them again."""
BULKY = (*GROWING, *(pattern + compressed.SUFFIX for pattern in GROWING))
"""The same as they may lie there."""


class DroppedError(UsageError):
    """A run whose captures were not kept cannot be collected again."""


@dataclass(frozen=True)
class Rule:
    """keep: of the experiment file (schema.keep), None: what is there stays as it lies; compress: what stays is compressed"""

    keep: str | None = None
    compress: bool = False


def settle(
    folder: Path,
    rule: Rule,
    verdict: str,
    packets: Mapping[str, int],
    digests: Mapping[str, str],
    before: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """Drop what the file does not keep, compress what it keeps compressed; returns run.json's `captures`, a row per file.

    A row has file (what it was when it was read), bytes, packets of captures, kept; of what is not there in that form sha256; of what is
    compressed stored, the place where it lies.
    packets: of the captures that were analysed, by interface; the others are counted
    digests: of the raw files, by path within the folder
    before: run.json as it was; what is compressed already has its row there
    """
    files = sorted(file for pattern in GROWING for file in (folder / "raw").glob(pattern))
    rows: list[dict[str, Any]] = []
    for file in files:
        entry: dict[str, Any] = {"file": f"raw/{file.name}", "bytes": file.stat().st_size}
        if file.suffix == ".pcap":
            entry["packets"] = packets[file.stem] if file.stem in packets else count(file)
        rows.append(entry)
    kept = is_kept(rule.keep, verdict, sum(entry["bytes"] for entry in rows))
    for entry, file in zip(rows, files, strict=True):
        entry["kept"] = kept
        if not kept or rule.compress:
            entry["sha256"] = digests[entry["file"]]
        if not kept:
            file.unlink()
        elif rule.compress:
            entry["stored"] = f"raw/{compressed.compress(file).name}"
    rows += (entry for entry in _rows(before) if "stored" in entry)
    return sorted(rows, key=lambda entry: str(entry["file"]))


@contextmanager
def readable(folder: Path, document: Mapping[str, Any]) -> Iterator[Path]:
    """The run's raw folder with all files as they were when they were first read (collectors.compressed)."""
    sizes = {Path(str(entry.get("file"))).name: entry.get("bytes") for entry in _rows(document)}
    with compressed.plain(folder / "raw", {name: size for name, size in sizes.items() if isinstance(size, int)}) as raw:
        yield raw


def require(document: Mapping[str, Any], folder: Path) -> None:
    """Raise DroppedError where a run's captures are needed and were not kept."""
    if any(entry.get("kept") is False for entry in _rows(document)):
        raise DroppedError(
            f"{folder}: its captures were read and not kept (captures.keep of its experiment); "
            "its records are as they were made, and only a run with captures.keep: always could be collected again"
        )


def _rows(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    entries = document.get(KEY)
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def count(file: Path) -> int:
    """Packets of a capture, by the lengths in their headers."""
    total, at, size = 0, FILE_HEADER, file.stat().st_size
    with open(file, "rb") as data:
        order = "<" if data.read(4)[:1] in (b"\x4d", b"\xd4") else ">"
        while at + RECORD_HEADER <= size:
            data.seek(at + 8)
            at += RECORD_HEADER + struct.unpack(f"{order}I", data.read(4))[0]
            total += at <= size
    return total
