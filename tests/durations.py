# SPDX-License-Identifier: Apache-2.0
"""What the tests of each folder cost, reported at the end of pytest: time, and CPU time of pytest and of all that it has awaited.

Where pytest has as many workers as CPUs or more, only less CPU time, or less waiting at once, makes the whole shorter: `tests/order.py`
decides by these costs what runs beside what.
"""

from __future__ import annotations

import resource
from collections import defaultdict
from collections.abc import Generator, Iterable
from pathlib import PurePath
from typing import NamedTuple

import pytest

from base.cache import recall, remember
from base.paths import cache_dir

QUESTION = ["seconds and CPU seconds of each file of tests in the last whole run"]
LEAST_S = 1.0
"""A folder that took less is not named, nor is a file."""


class Cost(NamedTuple):
    """What a file's tests took together, and how much of the CPUs' time that was."""

    took_s: float
    cpu_s: float

    @property
    def busy(self) -> float:
        """CPU time in a second of it; more than 1 where it has several processes."""
        return self.cpu_s / self.took_s if self.took_s else 0.0


def spent_s() -> float:
    """CPU time of this process so far, and of the children that have ended."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


class CpuTime:
    """Notes in each report (`cpu_s`) what has been spent since the one before."""

    def __init__(self) -> None:
        self._before_s = spent_s()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        before_s, self._before_s = self._before_s, spent_s()
        report.cpu_s = self._before_s - before_s  # type: ignore[attr-defined]
        return report


def summary(reports: Iterable[pytest.TestReport]) -> list[str]:
    """A line for each folder of tests/ with its files, the slowest first.

    s: what preparing, testing and tidying took, and behind the stroke its CPU time.
    """
    of_files: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(lambda: [0.0, 0.0]))
    tests: dict[str, set[str]] = defaultdict(set)
    for report in reports:
        file = PurePath(report.location[0])
        costs = of_files[file.parent.name][file.stem]
        costs[0] += report.duration
        costs[1] += getattr(report, "cpu_s", 0.0)
        tests[file.parent.name].add(report.nodeid)
    total_s = {
        folder: [sum(costs[i] for costs in files.values()) for i in (0, 1)] for folder, files in of_files.items()
    }
    lines = []
    for folder in sorted(total_s, key=lambda folder: -total_s[folder][0]):
        slowest = sorted(of_files[folder].items(), key=lambda file: -file[1][0])
        each = ", ".join(f"{name} {took_s:.0f}/{cpu_s:.0f}" for name, (took_s, cpu_s) in slowest if took_s >= LEAST_S)
        if each:
            took_min, cpu_min = (value / 60 for value in total_s[folder])
            lines.append(f"{folder}: {len(tests[folder])} tests, {took_min:.1f} min, CPU {cpu_min:.1f} min (s: {each})")
    return lines


def by_file(reports: Iterable[pytest.TestReport]) -> dict[str, Cost]:
    """What each file's tests cost together, by its name below the checkout."""
    costs: dict[str, Cost] = defaultdict(lambda: Cost(0.0, 0.0))
    for report in reports:
        file = report.location[0]
        costs[file] = Cost(costs[file].took_s + report.duration, costs[file].cpu_s + getattr(report, "cpu_s", 0.0))
    return dict(costs)


def last() -> dict[str, Cost]:
    """What each file cost in the last whole run on this machine, for the order of the next one."""
    return {file: Cost(*cost) for file, cost in (recall(cache_dir(), QUESTION) or {}).items()}


def keep(costs: dict[str, Cost]) -> None:
    remember(cache_dir(), QUESTION, {**last(), **costs})
