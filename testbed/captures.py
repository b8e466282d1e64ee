# SPDX-License-Identifier: Apache-2.0
"""What becomes of a run's captures and samples once they have been read: run.json tells of each, and keeps its digest."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from base.errors import UsageError
from schema.keep import is_kept

KEY = "captures"
FILE_HEADER, RECORD_HEADER = 24, 16
BULKY = ("*.pcap", "tcp_probe.bin", "sockets.bin", "queues.bin")
"""What grows with packets and time. Samples go with the captures: without these no records could be made from them again."""


class DroppedError(UsageError):
    """A run whose captures were not kept cannot be collected again."""


def settle(
    folder: Path, keep: str | None, verdict: str, packets: Mapping[str, int], digests: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Drop what the file does not keep; returns run.json's `captures`: file, bytes, packets of captures, sha256, kept.

    keep: of the experiment file (schema.keep)
    packets: of the captures that were analysed, by interface; the others are counted
    digests: of the raw files, by path within the folder
    """
    files = sorted(file for pattern in BULKY for file in (folder / "raw").glob(pattern))
    rows: list[dict[str, Any]] = []
    for file in files:
        entry: dict[str, Any] = {"file": f"raw/{file.name}", "bytes": file.stat().st_size}
        if file.suffix == ".pcap":
            entry["packets"] = packets[file.stem] if file.stem in packets else count(file)
        rows.append(entry)
    kept = is_kept(keep, verdict, sum(entry["bytes"] for entry in rows))
    for entry, file in zip(rows, files, strict=True):
        entry["kept"] = kept
        if not kept:
            entry["sha256"] = digests[entry["file"]]
            file.unlink()
    return rows


def require(document: Mapping[str, Any], folder: Path) -> None:
    """Raise DroppedError where a run's captures are needed and were not kept."""
    entries = document.get(KEY)
    if isinstance(entries, list) and any(isinstance(entry, dict) and entry.get("kept") is False for entry in entries):
        raise DroppedError(
            f"{folder}: its captures were read and not kept (captures.keep of its experiment); "
            "its records are as they were made, and only a run with captures.keep: always could be collected again"
        )


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
