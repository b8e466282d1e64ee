# SPDX-License-Identifier: Apache-2.0
"""The cache's entries, when each was last used, and removal of those unused for long.

An entry is a file or folder that one content key names. It is removed under its own lock by renaming it first, so
nobody ever meets half of it; a process that has it open keeps what it opened.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from base.cache import ASIDE, LOCKS, locked, remove, remove_orphans

KINDS = {
    "agents": "agents",
    "experiments": "results of experiments for tests",
    "experiments/raw": "raw files of guests for tests",
    "grafana-libraries": "libraries for tests of dashboards",
    "kernels": "kernels",
    "kernels/base": "kernels without modules",
    "kernels/modules": "compiled modules",
    "mypy": "the type checker's memory for tests",
    "native": "packet collectors",
    "sources": "kernel sources",
    "spec-guests": "results of guests for tests",
    "stock": "Debian's kernel headers",
    "timescaledb": "databases for tests",
    "userland": "user lands of guests",
    "venv": "Python environments",
    "vm": "root images",
}
"""Folders of the cache whose children are entries, and what those are."""

NOT_ENTRIES = {"kernels/base", "kernels/modules", "experiments/raw"}


@dataclass(frozen=True)
class Entry:
    """One thing that can be made again."""

    path: Path
    kind: str
    size: int
    """Bytes on disk; what several entries share by hard links counts in each."""
    idle: float
    """Seconds since it was last used."""


def entries(cache: Path, kinds: Iterable[str] = KINDS) -> Iterator[Entry]:
    """All entries of these kinds, by kind and name."""
    now = time.time()
    for kind in sorted(kinds):
        folder = cache / kind
        if not folder.is_dir():
            continue
        for path in sorted(folder.iterdir()):
            inner = f"{kind}/{path.name}"
            if path.name.startswith(".") or path.suffix == ".lock" or inner in NOT_ENTRIES or path.is_symlink():
                continue
            yield Entry(path, kind, _size(path), max(0.0, now - path.stat().st_mtime))


def prune(cache: Path, entries: list[Entry], unused_for: float) -> list[Entry]:
    """Remove the entries that nothing has used for `unused_for` seconds, and give them; also what killed owners left."""
    removed = []
    for entry in entries:
        parent, name = entry.path.parent, entry.path.name
        with locked(parent / LOCKS / name, wait=False) as lock:
            # looked at again under the lock: it may just have been used or made anew
            if lock is None or not entry.path.exists() or time.time() - entry.path.stat().st_mtime < unused_for:
                continue
            gone = parent / f"{ASIDE}{name}"
            remove(gone)
            entry.path.rename(gone)
            _delete(gone)
        removed.append(entry)
    for kind in KINDS:
        remove_orphans(cache / kind)
    return removed


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def _size(path: Path) -> int:
    """Bytes on disk of a file or a tree, each file once."""
    if not path.is_dir():
        return _taken(path.stat())
    counted: dict[tuple[int, int], int] = {}
    for folder, _, files in os.walk(path):
        for name in files:
            try:
                facts = os.lstat(os.path.join(folder, name))
            except FileNotFoundError:
                continue  # someone removes it at this moment
            counted[facts.st_dev, facts.st_ino] = _taken(facts)
    return sum(counted.values())


def _taken(facts: os.stat_result) -> int:
    """Bytes on disk; a file that is not written out yet has no blocks."""
    return facts.st_blocks * 512 or facts.st_size
