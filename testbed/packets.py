# SPDX-License-Identifier: Apache-2.0
"""One digest of all packets of a run, by which two runs of one id are held against each other."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

SAME_PACKETS = "virtual"
"""The kind of host on which a run has the same packets each time."""


def packets(raw: Path) -> str:
    """As packets_of(), of a run's raw folder."""
    captures = {}
    for file in raw.glob("*.pcap"):
        with file.open("rb") as content:
            captures[file.name] = hashlib.file_digest(content, "sha256").hexdigest()
    return packets_of(captures)


def packets_of(digests: Mapping[str, str]) -> str:
    """SHA-256 over all captures with their names: every packet and its time; "" of a run that captured nothing.

    digests: path → SHA-256 in hexadecimal, of captures and other files
    """
    captures = sorted((Path(name).name, digest) for name, digest in digests.items() if name.endswith(".pcap"))
    whole = hashlib.sha256()
    for name, digest in captures:
        whole.update(name.encode() + bytes.fromhex(digest))
    return whole.hexdigest() if captures else ""
