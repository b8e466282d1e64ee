# SPDX-License-Identifier: Apache-2.0
"""Killed at any moment, nothing stays behind, and running again completes what is missing."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from hosts.virtual.launch import GuestKernel
from tests import lab
from tests.processes import processes_of
from tests.waiting import wait_until

TWO = lab.SMALL.replace("duration: 5s", "duration: 2s") + "repeats: 2\n"
KILLS, BATCHES = 20, 2
_draw = random.Random(20081)
MOMENTS = [(i + _draw.random()) / KILLS for i in range(KILLS)]
"""One in each twentieth of the time that both runs take."""
GONE_WITHIN_S = 20


def start(tmp_path: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        lab.command("execute", lab.write(tmp_path, TWO), "--results", tmp_path / "results", "--jobs=2"),
        cwd=lab.ROOT,
        env={**os.environ, "PYTHONPATH": str(lab.ROOT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def mounts_of(folder: Path) -> list[str]:
    return [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(folder) in line]


def assert_clean(tmp_path: Path) -> None:
    results = tmp_path / "results"
    wait_until(lambda: not processes_of(results), GONE_WITHIN_S, say=lambda: processes_of(results), every_s=0.1)
    wait_until(lambda: not (results / ".aside").exists(), GONE_WITHIN_S)
    assert mounts_of(tmp_path) == []
    for folder in (path for path in results.glob("small/*") if path.is_dir()):  # the report is a file
        assert (folder / "run.json").is_file(), f"{folder} is half a run"


@dataclass(frozen=True)
class Whole:
    """An execution that nobody has killed."""

    digests: list[dict[str, str]]
    took_s: float


@pytest.fixture(scope="module")
def whole(kernel: GuestKernel, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    started = time.monotonic()
    folder = lab.execute(tmp_path_factory.mktemp("whole"), TWO, "--jobs=2")
    return Whole([lab.digests(run["path"]) for run in lab.runs(folder)], time.monotonic() - started)


def was_killed(tmp_path: Path, moment_s: float) -> bool:
    """Whether the command still ran at that moment."""
    process = start(tmp_path)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(moment_s)
        return False
    process.kill()
    process.wait()
    return True


def test_the_moments_differ() -> None:
    assert len(set(MOMENTS)) == KILLS and sorted(MOMENTS) == MOMENTS


@pytest.mark.parametrize("batch", range(BATCHES))
def test_kill_9_leaves_nothing_and_running_again_completes(whole: Whole, tmp_path: Path, batch: int) -> None:
    """Ten kills, each of the command that goes on where the one before was killed."""
    for moment in MOMENTS[batch::BATCHES]:
        moment_s = moment * whole.took_s
        while not was_killed(tmp_path, moment_s):
            # all runs are there already: they are made once more, and earlier if need be
            shutil.rmtree(tmp_path / "results")
            moment_s *= 0.9
        assert_clean(tmp_path)
    folder = lab.execute(tmp_path, TWO)
    assert [lab.digests(run["path"]) for run in lab.runs(folder)] == whole.digests


def test_ctrl_c_ends_at_once_and_keeps_what_is_complete(kernel: GuestKernel, tmp_path: Path) -> None:
    process = start(tmp_path)
    wait_until((tmp_path / "results/.aside").exists, while_running=process)
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(30) == 1
    assert_clean(tmp_path)


def test_ctrl_c_of_a_terminal_lets_the_records_of_an_ended_run_be_written(kernel: GuestKernel, tmp_path: Path) -> None:
    process, results = start(tmp_path), tmp_path / "results"
    wait_until(lambda: list(results.glob(".aside/*/run.json")), while_running=process, every_s=0.02)
    os.killpg(process.pid, signal.SIGINT)  # to all of them
    process.wait(60)
    assert_clean(tmp_path)
    assert not list(results.glob("small/*.failed-*"))
    assert list(results.glob("small/*/run.json"))


def test_what_a_killed_janitor_left_is_removed_by_the_next_run(kernel: GuestKernel, tmp_path: Path) -> None:
    left = tmp_path / "results/.aside" / ("0123456789abcdef" * 2)  # as the program names them; others are left alone
    (left / "raw").mkdir(parents=True)
    (left.with_suffix(".lock")).touch()
    lab.execute(tmp_path, lab.SMALL)
    assert not left.exists()


def test_a_second_run_does_nothing(small: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in small.rglob("*") if path.name != "report.html"}
    output = lab.warpbed("execute", small.parent.parent / "experiment.yml", "--results", small.parent)
    assert "nothing to do: all 1 runs are there" in output
    after = {path: path.stat().st_mtime_ns for path in small.rglob("*") if path.name != "report.html"}
    changed = [path for path in after if after[path] != before.get(path) and path != small]
    assert changed == []


def test_kill_9_of_the_command_leaves_no_temporary_files_of_ansible(tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    file = lab.write(tmp_path, lab.SMALL)
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "testbed", "run", str(file), "--results", str(tmp_path / "results")],
        cwd=lab.ROOT,
        env={**os.environ, "TMPDIR": str(temporary), "WARPBED_CACHE": str(tmp_path / "cache")},  # nothing is built
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )
    wait_until(lambda: any(temporary.glob("warpbed-*/ansible-local-*")))
    process.kill()
    process.wait()
    wait_until(lambda: not any(temporary.iterdir()))
