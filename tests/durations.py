# SPDX-License-Identifier: Apache-2.0
"""How long the tests of each folder took, reported at the end of pytest: the sum over them, as one CPU would run them one after another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import PurePath

import pytest

LEAST_S = 1.0
"""A folder that took less is not named, nor is a file."""


def summary(reports: Iterable[pytest.TestReport]) -> list[str]:
    """A line for each folder of tests/ with its files, the slowest first; s: what preparing, testing and tidying took."""
    of_files: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    tests: dict[str, set[str]] = defaultdict(set)
    for report in reports:
        file = PurePath(report.location[0])
        of_files[file.parent.name][file.stem] += report.duration
        tests[file.parent.name].add(report.nodeid)
    total_s = {folder: sum(files.values()) for folder, files in of_files.items()}
    lines = []
    for folder in sorted(total_s, key=lambda folder: -total_s[folder]):
        slowest = sorted(of_files[folder].items(), key=lambda file: -file[1])
        each = ", ".join(f"{name} {took_s:.0f}" for name, took_s in slowest if took_s >= LEAST_S)
        if each:
            lines.append(f"{folder}: {len(tests[folder])} tests, {total_s[folder] / 60:.1f} min (s: {each})")
    return lines
