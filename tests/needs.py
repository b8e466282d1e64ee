# SPDX-License-Identifier: Apache-2.0
"""What a test needs beside Python and the compiled collector, as markers: by its fixtures and by its folder.

Tests in tests/unit need nothing, which is checked when they are collected. A test that needs something and uses none of these
fixtures says so with the marker itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import pytest

from base.paths import ROOT
from testbed.commands.test import NEEDS

OF_FIXTURES: dict[str, tuple[str, ...]] = {
    "kernel": ("guest",),
    "builds": ("machine",),
    "timescale": ("database", "root"),
    "docker": ("docker", "root"),
    "hosts": ("root",),
    "nearby": ("root",),
    "pair": ("root",),
    "tree": ("style",),
}
OF_FOLDERS: dict[str, tuple[str, ...]] = {
    "browser": ("browser",),
    "guest": ("guest",),
    "long": ("slow",),
    "playbooks": ("playbook",),
    "style": ("style",),
}


def folder_of(item: pytest.Item) -> str:
    """The folder below tests/ that a test lies in; empty where it lies in none."""
    parts = Path(item.path).relative_to(ROOT / "tests").parts
    return parts[0] if len(parts) > 1 else ""


def mark(item: pytest.Item) -> None:
    """Give a test the markers of its fixtures and its folder; raises UsageError for one of tests/unit that needs something."""
    folder = folder_of(item)
    for fixture in set(getattr(item, "fixturenames", ())) & OF_FIXTURES.keys():
        for name in OF_FIXTURES[fixture]:
            item.add_marker(name)
    for name in OF_FOLDERS.get(folder, ()):
        item.add_marker(name)
    needed = [name for name in NEEDS if item.get_closest_marker(name)]
    if folder == "unit" and needed:
        raise pytest.UsageError(f"{item.nodeid} needs {', '.join(needed)}: it does not belong in tests/unit")


def longest_first(items: list[pytest.Item], took_s: Mapping[str, float]) -> list[pytest.Item]:
    """The files in the order of what they took last; those of which that is not known come first where one of their tests is slow.

    pytest-xdist's `loadfile` hands the next file to the worker that has finished, so that only short ones are left when the run ends,
    and what tests of a file share is made once.
    """
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)

    def seconds(file: Path) -> float:
        is_slow = any(item.get_closest_marker("slow") for item in files[file])
        return took_s.get(name_of(file), math.inf if is_slow else 0.0)

    return [item for file in sorted(files, key=seconds, reverse=True) for item in files[file]]


def name_of(file: Path) -> str:
    """A file of tests below the checkout, as pytest's reports name it."""
    return str(file.relative_to(ROOT)) if file.is_relative_to(ROOT) else str(file)
