# SPDX-License-Identifier: Apache-2.0
"""A guest's processes read the clock by themselves as they would by system calls: what each read gives is known to the nanosecond."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from hosts.virtual import pinned
from hosts.virtual.launch import GuestKernel
from tests.guest_programs import said


@pytest.fixture(scope="module")
def reads(kernel: GuestKernel, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    root, folder = pinned.root(), tmp_path_factory.mktemp("clock")
    assert root is not None
    answer: dict[str, Any] = said(kernel, root, folder, "guest_clock.py", "reads")
    return answer


def test_each_read_of_any_clock_is_a_nanosecond_after_the_one_before(reads: dict[str, Any]) -> None:
    """Monotonic and real time come from the vDSO, monotonic raw time from the kernel; both know what the other has given last."""
    for clock in zip(*reads["rounds"], strict=True):
        assert {later - earlier for earlier, later in itertools.pairwise(clock)} == {3}
    monotonic, _, real = reads["rounds"][0]
    assert real - monotonic > 0


def test_a_process_that_reads_without_end_lets_time_pass(reads: dict[str, Any]) -> None:
    """250 reads are free, then each waits for what happens next, at most a millisecond."""
    steps = [later - earlier for earlier, later in itertools.pairwise(reads["loop"])]
    assert set(steps[:240]) == {1}
    assert max(steps[245:]) > 1000 and max(steps) <= 1_000_001
