# SPDX-License-Identifier: Apache-2.0
"""A guest's processes read the clock by themselves as they would by system calls: what each read gives is known to the nanosecond."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from typing import Any

import pytest

from hosts.virtual import boot, pinned
from hosts.virtual.launch import GuestKernel
from plan.console import PREFIX
from tests import lab


@pytest.fixture(scope="module")
def reads(kernel: GuestKernel, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    root, folder = pinned.root(), tmp_path_factory.mktemp("clock")
    assert root is not None
    line = boot.arguments(
        kernel, 256, boot.SYSTEM_PYTHON, "loglevel=4", *boot.shares(kernel, folder),
        *boot.python(lab.ROOT / "tests/guest_clock.py", root=root), start_ns=1, root=root,
    )  # fmt: skip
    done = subprocess.run(
        boot.caged(min(os.sched_getaffinity(0)), folder, line, boot.places(kernel, root)),
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, env=boot.environment(), timeout=200,
    )  # fmt: skip
    (said,) = [text for text in done.stdout.splitlines() if text.startswith(f"{PREFIX}reads ")] or [
        done.stdout + done.stderr
    ]
    answer: dict[str, Any] = json.loads(said.removeprefix(f"{PREFIX}reads "))
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
