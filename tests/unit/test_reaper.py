# SPDX-License-Identifier: Apache-2.0
"""Nothing that a test has started outlives its pytest, also where that was killed."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import lab, reaper
from tests.waiting import wait_until

STARTS = """
import subprocess, sys
from tests import reaper
reaper.start()
for words in (["sleep", sys.argv[1]], ["sh", "-c", f"setsid sleep {sys.argv[1]} & disown 2>/dev/null; exit 0"]):
    subprocess.Popen(words, start_new_session=True)
print("started", flush=True)
sys.stdin.read()
"""

CONFTEST = """
from tests import conftest
from tests.conftest import nothing_goes_on
conftest.ENDING_S = 0.2
"""
LEAVES = """
import subprocess
def test_leaves_a_process():
    subprocess.run(["sh", "-c", "sleep {seconds} >/dev/null 2>&1 &"], check=True)
"""


def test_what_a_killed_pytest_has_started_ends_with_it_whatever_its_session_or_parent(tmp_path: Path) -> None:
    seconds = "98765.4321"  # a sleep that no one else does
    process = subprocess.Popen(
        [sys.executable, "-c", STARTS, seconds], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=lab.ROOT
    )
    assert process.stdout is not None and process.stdout.readline() == "started\n"
    wait_until(lambda: len(lab.processes_with(f"sleep {seconds}")) >= 2)
    process.kill()
    process.communicate()
    wait_until(lambda: not lab.processes_with(seconds), say=lambda: lab.processes_with(seconds))


def test_an_ordinary_end_waits_until_nothing_is_left_and_says_nothing() -> None:
    seconds = "98764.4321"
    leaves_one = f"""
import subprocess
from tests import reaper
reaper.start()
nowhere = subprocess.DEVNULL
subprocess.run(["sh", "-c", "setsid sleep {seconds} & exit 0"], start_new_session=True, stdout=nowhere, stderr=nowhere)
"""
    command = [sys.executable, "-X", "dev", "-c", leaves_one]  # which warns of a process that nobody has waited for
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, cwd=lab.ROOT, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert not lab.processes_with(seconds)


def test_what_a_test_leaves_running_is_found(request: pytest.FixtureRequest) -> None:
    """Also where its parent is dead; conftest asks at the end of each file."""
    here = request.node.nodeid.partition("::")[0]
    assert not reaper.left_by(here)
    subprocess.run(["sh", "-c", "sleep 610 >/dev/null 2>&1 &"], check=True)
    wait_until(lambda: [line.partition(", of ")[0] for line in reaper.left_by(here).values()] == ["sleep 610"], 20)
    reaper.kill(list(reaper.left_by(here)))
    wait_until(lambda: not reaper.left_by(here), 20)
    assert not reaper.left_by("tests/unit/test_other.py")


def test_a_pool_of_processes_leaves_nothing_of_its_own(request: pytest.FixtureRequest) -> None:
    """Benchmarks measure in one; Python keeps a process beside it until this one ends."""
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(os.getpid).result() != os.getpid()
    here = request.node.nodeid.partition("::")[0]
    wait_until(lambda: not reaper.left_by(here), 20, say=lambda: reaper.left_by(here))


def test_a_file_whose_tests_leave_a_process_fails_and_the_process_ends(tmp_path: Path) -> None:
    seconds = "98763.4321"
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_leaves.py").write_text(LEAVES.format(seconds=seconds))
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-c", "/dev/null", "--rootdir", str(tmp_path), str(tmp_path)]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=lab.ROOT, env={**os.environ, "PYTHONPATH": str(lab.ROOT)}
    )
    assert done.returncode == 1 and "1 passed, 1 error" in done.stdout, done.stdout + done.stderr
    assert f"sleep {seconds}, of test_leaves.py::test_leaves_a_process" in done.stdout, done.stdout
    wait_until(lambda: not lab.processes_with(f"sleep {seconds}"))
