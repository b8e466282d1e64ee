# SPDX-License-Identifier: Apache-2.0
"""The time of a folder's tests, as the end of `./warpbed test` reports it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest

from tests import durations
from tests.durations import CpuTime, summary


def report(name: str, phase: Literal["setup", "call", "teardown"], seconds: float) -> pytest.TestReport:
    file = f"tests/{name}.py"
    one = pytest.TestReport(f"{file}::test", (file, 1, "test"), {}, "passed", None, phase, duration=seconds)
    one.cpu_s = seconds / 2  # type: ignore[attr-defined]
    return one


def test_all_phases_of_a_folders_tests_are_summed_and_the_slowest_come_first() -> None:
    reports = [
        report("hosts/test_lab", "setup", 10),
        report("hosts/test_lab", "call", 50),
        report("hosts/test_vm", "call", 61),
        report("hosts/test_vm", "teardown", 29),
        report("hosts/test_quick", "call", 0.1),
        report("guest/test_runs", "call", 1000),
        report("unit/test_lint", "call", 0.2),
    ]
    assert summary(reports) == [
        "guest: 1 tests, 16.7 min, CPU 8.3 min (s: test_runs 1000/500)",
        "hosts: 3 tests, 2.5 min, CPU 1.3 min (s: test_vm 90/45, test_lab 60/30)",
    ]


def test_cpu_time_is_that_of_the_test_and_of_the_programs_that_it_has_awaited() -> None:
    busy = "import time\nwhile time.process_time() < 0.3: pass"
    costs = CpuTime()
    noting = costs.pytest_runtest_makereport()
    next(noting)
    subprocess.run([sys.executable, "-c", busy], check=True)
    quick = report("unit/test_lint", "call", 1)
    with pytest.raises(StopIteration) as ended:
        noting.send(quick)
    assert ended.value.value is quick and 0.3 <= vars(quick)["cpu_s"] < 2


def test_what_each_file_cost_is_known_to_the_next_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durations, "cache_dir", lambda: tmp_path)
    assert durations.last() == {}
    durations.keep(durations.by_file([report("a/test_x", "setup", 2), report("a/test_x", "call", 3)]))
    durations.keep(durations.by_file([report("a/test_y", "call", 4)]))
    assert durations.last() == {"tests/a/test_x.py": (5, 2.5), "tests/a/test_y.py": (4, 2)}
