# SPDX-License-Identifier: Apache-2.0
"""Records are made in a process of its own: what hangs, dies or fills memory is one run's failure and ends nothing else."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from testbed import collecting
from testbed.collecting import Trouble, collect_apart, collect_fetched, finishing
from testbed.forks import Forks
from tests import shell_calls

Collect = Callable[[Path], Trouble | None]
Python = Callable[[str], None]


def fetched(folder: Path) -> Trouble | None:
    return collect_fetched(folder, lambda: None)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "run/raw").mkdir(parents=True)
    return tmp_path / "run"


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Python:
    """Has a shell script run in the collector's place."""

    def does(script: str) -> None:
        program = tmp_path / shell_calls.SCRIPT
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(program))

    return does


@pytest.fixture(params=["made here", "fetched"])
def collect(request: pytest.FixtureRequest, python: Python) -> Iterator[Collect]:
    """The two ways to records, with that script in their place."""
    if request.param == "fetched":
        yield fetched
        return
    forks, cpu = Forks(shell_calls.__name__), min(os.sched_getaffinity(0))
    forks.start()  # before the script stands in Python's place
    yield lambda folder: collect_apart(folder, forks, cpu)
    forks.end()


def test_a_collector_that_hangs_is_ended_with_the_reason(
    run: Path, collect: Collect, python: Python, monkeypatch: pytest.MonkeyPatch
) -> None:
    python("exec sleep 600")
    monkeypatch.setattr(collecting, "COLLECT_LEAST_S", 0.2)
    assert collect(run) == Trouble("not done after 0 s with 0 MB of raw files")


def test_one_that_is_killed_is_told_as_such(run: Path, collect: Collect, python: Python) -> None:
    python("kill -9 $$")
    assert collect(run) == Trouble("ended by SIGKILL; where that was the kernel, memory has run out")


def test_a_disk_that_fails_is_told_from_files_that_give_no_result(run: Path, collect: Collect, python: Python) -> None:
    python("echo no room; exit 74")
    assert collect(run) == Trouble("no room", is_disk=True)
    python("echo no packets >&2; exit 1")
    assert collect(run) == Trouble("no packets")


def test_what_others_have_sent_gets_bounded_memory_and_is_what_the_kernel_ends_first(run: Path, python: Python) -> None:
    python("ulimit -d; cat /proc/$$/oom_score_adj; exit 1")
    trouble = fetched(run)
    assert trouble is not None
    memory_kib, score = map(int, trouble.detail.split())
    assert score == 1000
    assert memory_kib == int(0.75 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")) >> 10


def test_who_is_told_to_end_does_not_wait_for_it(run: Path, python: Python) -> None:
    python("exec sleep 600")

    def heed() -> None:
        raise KeyError("told to end")

    with pytest.raises(KeyError, match="told to end"):
        collect_fetched(run, heed)


def test_the_real_program_tells_what_is_wanting(run: Path) -> None:
    trouble = fetched(run)
    assert trouble is not None and "run.json" in trouble.detail
    with finishing() as forks:
        assert collect_apart(run, forks, min(os.sched_getaffinity(0))) == trouble


def test_a_terminals_ctrl_c_is_not_for_it_from_its_first_moment_on(
    run: Path, collect: Collect, python: Python, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before its program is there, and to the end of it; this process hears of it as before."""
    python("kill -INT $$; echo still here; exit 1")
    monkeypatch.setattr(collecting, "_bounded", lambda: os.kill(os.getpid(), signal.SIGINT))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    assert collect(run) == Trouble("still here")
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == mask
