# SPDX-License-Identifier: Apache-2.0
"""What a test needs beside Python and the compiled collector, as markers: by its fixtures and by its folder.

Tests in tests/unit need nothing, which is checked when they are collected. A test that needs something and uses none of these
fixtures says so with the marker itself.
"""

from __future__ import annotations

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
    "fuzz": ("slow",),
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
