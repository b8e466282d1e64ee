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
    "guest": ("guest",),
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
    if "guest" in needed and item.get_closest_marker("timeout") is None:
        # it takes as long as the machine is slow; only one that hangs is to be ended
        item.add_marker(pytest.mark.timeout(900))


def longest_first(items: list[pytest.Item], workers: int) -> list[pytest.Item]:
    """Files with a slow test first, shared among the workers, so that none of them is what the last worker ends with.

    pytest-xdist's `worksteal` gives each worker an equal part of the list, in its order, and moves what waits from the end
    of one part to a worker that has finished. Tests of one file stay together: they share fixtures.
    """
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    slow = [tests for tests in files.values() if any(test.get_closest_marker("slow") for test in tests)]
    others = [test for tests in files.values() if tests not in slow for test in tests]
    share = len(items) // workers
    ordered: list[pytest.Item] = []
    for worker in range(workers):
        part = [test for tests in slow[worker::workers] for test in tests]
        room = max(0, share - len(part)) if worker < workers - 1 else len(others)
        ordered += [*part, *others[:room]]
        del others[:room]
    return ordered
