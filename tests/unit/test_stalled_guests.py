# SPDX-License-Identifier: Apache-2.0
"""Guests whose clock stands still: given up where they burn CPU time or sleep, not where others leave them no CPU."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from base.linux import die_with_parent
from hosts.virtual import stall
from tests.waiting import wait_until

BUSY = "while True: pass"
BUSY_CHILD = """
import os
parent = os.getpid()
if os.fork():
    os.wait()
while os.getppid() == parent:  # killed with its parent, not after the tests
    pass
"""


@contextmanager
def running(*lines: list[str]) -> Iterator[list[subprocess.Popen[bytes]]]:
    processes = [subprocess.Popen(line, preexec_fn=die_with_parent) for line in lines]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def busy(*words: str) -> list[str]:
    return [*words, sys.executable, "-I", "-S", "-c", BUSY]


def test_one_that_sleeps_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with running(["sleep", "600"]) as (guest,):
        patience = stall.Stall(guest.pid)
        patience.moved()
        assert patience.exhausted(3.0) is None, "a moment of sleep is none of it"
        monkeypatch.setattr(stall, "STALL_WALL_S", 0.2)
        wait_until(lambda: patience.exhausted(3.0) is not None, 60, while_running=guest)
        words = patience.exhausted(3.0)
        assert words is not None and "at 3 virtual seconds: the guest sleeps, and nothing wakes it" in words


def test_one_that_burns_cpu_time_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stall, "STALL_CPU_S", 0.2)
    with running(busy()) as (guest,):
        patience = stall.Stall(guest.pid)
        wait_until(lambda: patience.exhausted(0.5) is not None, 60, while_running=guest)
        words = patience.exhausted(0.5)
        assert words is not None and "at 0.5 virtual seconds: something in the guest busy-loops" in words


def test_one_that_waits_for_a_cpu_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stall, "STALL_WALL_S", 0.2)
    monkeypatch.setattr(stall, "STALL_CPU_S", 60.0)
    one = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
    with running(busy(*one, "nice", "-n", "19"), busy(*one), busy(*one)) as (guest, *_):
        wait_until(lambda: stall.waited_s(guest.pid) > 0.1, 60, while_running=guest)
        patience = stall.Stall(guest.pid)
        patience.moved()
        begun = time.monotonic()
        wait_until(lambda: time.monotonic() - begun > 1.0, 60)
        assert patience.exhausted(1.0) is None
        wait_until(
            lambda: stall.waited_s(guest.pid) > 5 * stall.cpu_s(guest.pid), 60, say=lambda: "it had too much of the CPU"
        )


def test_one_that_never_gets_a_cpu_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until it gets one the kernel counts none of the time for which it has waited."""
    monkeypatch.setattr(stall, "STALL_WALL_S", 0.2)
    monkeypatch.setattr(stall, "waited_s", lambda pid: 0.0)
    with running(busy("nice", "-n", "19")) as (guest,):
        patience = stall.Stall(guest.pid)
        wait_until(lambda: Path(f"/proc/{guest.pid}/cmdline").read_bytes().endswith(f"{BUSY}\0".encode()), 60)
        patience.moved()
        monkeypatch.setattr(stall, "cpu_s", lambda pid: 0.0)
        begun = time.monotonic()
        wait_until(lambda: time.monotonic() - begun > 0.5, 60)
        assert patience.exhausted(1.0) is None
        os.kill(guest.pid, signal.SIGSTOP)
        wait_until(lambda: patience.exhausted(1.0) is not None, 60)


def test_processes_below_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stall, "STALL_CPU_S", 0.2)
    with running([sys.executable, "-I", "-S", "-c", BUSY_CHILD]) as (guest,):
        patience = stall.Stall(guest.pid)
        wait_until(lambda: patience.exhausted(0.5) is not None, 60, while_running=guest)


def test_a_process_that_ends_while_it_is_asked_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the three asks every process below this one; the child's end comes between its name and the list of its threads."""
    listdir = os.listdir
    for ask in (stall.cpu_s, stall.waited_s, stall.is_runnable):
        with running(["sleep", "600"]) as (child,):
            asked: list[int] = []

            def ends_first(
                folder: str, process: subprocess.Popen[bytes] = child, known: list[int] = asked
            ) -> list[str]:
                if folder == f"/proc/{process.pid}/task":
                    known.append(process.pid)
                    process.kill()
                    process.wait()
                return listdir(folder)

            monkeypatch.setattr(os, "listdir", ends_first)
            ask(os.getpid())
            assert asked
