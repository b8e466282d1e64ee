# SPDX-License-Identifier: Apache-2.0
"""The time of a group of tests, as the end of `./warpbed test` tells it."""

from __future__ import annotations

from typing import Literal

import pytest

from tests.durations import told


def report(name: str, phase: Literal["setup", "call", "teardown"], seconds: float, *marks: str) -> pytest.TestReport:
    file = f"tests/{name}.py"
    keywords: dict[str, Literal[1]] = dict.fromkeys(marks, 1)
    return pytest.TestReport(f"{file}::test", (file, 1, "test"), keywords, "passed", None, phase, duration=seconds)


def test_all_phases_of_a_groups_tests_are_summed_and_no_others() -> None:
    reports = [
        report("test_lab", "setup", 10, "real_host"),
        report("test_lab", "call", 50, "real_host", "slow"),
        report("test_vm", "call", 61, "real_host"),
        report("test_vm", "teardown", 29, "real_host"),
        report("test_spec", "call", 1000, "slow"),
    ]
    assert told(reports) == ["real hosts: 2 tests, 2.5 min (s: test_vm 90, test_lab 60)"]
    assert told(reports[-1:]) == []
