# SPDX-License-Identifier: Apache-2.0
"""Runs of commands side by side get CPUs of their own, as far as there are any."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from base.paths import ROOT
from testbed import free_cpu

HOLDER = """
import os, sys
os.sched_getaffinity = lambda pid: {3, 5}
from testbed import free_cpu
with free_cpu.taken(3) as cpu:
    print(cpu, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def two_cpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPBED_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 5})


def holder() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_another_command_gets_the_other_cpu_and_a_third_one_what_it_would_have_had() -> None:
    with holder() as first, holder() as second:
        assert first.stdout and second.stdout
        assert {first.stdout.readline(), second.stdout.readline()} == {"3\n", "5\n"}
        with free_cpu.taken(3) as third:
            assert third == 3
        with free_cpu.taken(5) as third:
            assert third == 5
        for process in (first, second):
            process.kill()
    with free_cpu.taken(5) as own, free_cpu.taken(5) as other:
        assert (own, other) == (5, 3)


def test_an_error_of_the_run_is_its_own_and_frees_the_cpu() -> None:
    with pytest.raises(BlockingIOError, match="of the run"), free_cpu.taken(3):
        raise BlockingIOError("of the run")
    with free_cpu.taken(3) as cpu:
        assert cpu == 3


def test_without_a_cache_that_can_be_written_the_cpu_is_the_preferred_one(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("no folder")
    with free_cpu.taken(3) as own, free_cpu.taken(3) as other:
        assert (own, other) == (3, 3)
