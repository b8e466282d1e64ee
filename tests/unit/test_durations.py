# SPDX-License-Identifier: Apache-2.0
"""The time of a folder's tests, as the end of `./warpbed test` reports it."""

from __future__ import annotations

from typing import Literal

import pytest

from tests.durations import summary


def report(name: str, phase: Literal["setup", "call", "teardown"], seconds: float) -> pytest.TestReport:
    file = f"tests/{name}.py"
    return pytest.TestReport(f"{file}::test", (file, 1, "test"), {}, "passed", None, phase, duration=seconds)


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
        "guest: 1 tests, 16.7 min (s: test_runs 1000)",
        "hosts: 3 tests, 2.5 min (s: test_vm 90, test_lab 60)",
    ]
