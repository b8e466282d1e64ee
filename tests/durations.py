# SPDX-License-Identifier: Apache-2.0
"""How long a group of tests took, reported at the end of pytest: the sum over its tests, as one CPU would have them one after another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import PurePath

import pytest

GROUPS = {"real_host": "real hosts"}
"""Marker: what is told of the tests that have it."""


def told(reports: Iterable[pytest.TestReport]) -> list[str]:
    """A line for each group that has tests, with its files, the slowest first; s: what preparing, testing and tidying took."""
    lines = []
    of_files: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    tests: dict[str, set[str]] = defaultdict(set)
    for report in reports:
        for marker in GROUPS.keys() & report.keywords.keys():
            of_files[marker][PurePath(report.location[0]).stem] += report.duration
            tests[marker].add(report.nodeid)
    for marker, files in of_files.items():
        each = ", ".join(f"{name} {took:.0f}" for name, took in sorted(files.items(), key=lambda file: -file[1]))
        lines.append(f"{GROUPS[marker]}: {len(tests[marker])} tests, {sum(files.values()) / 60:.1f} min (s: {each})")
    return lines
