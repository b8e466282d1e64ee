# SPDX-License-Identifier: Apache-2.0
"""Killed at any moment, nothing stays behind, and running again completes what is missing."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hosts.virtual.launch import GuestKernel
from tests import lab

FOUR = lab.SMALL.replace("duration: 5s", "duration: 3s") + "repeats: 4\n"
MOMENTS_S = [random.Random(20081).uniform(0.2, 4.0) for _ in range(4)]
GONE_WITHIN_S = 20


def start(tmp_path: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        lab.command("execute", lab.write(tmp_path, FOUR), "--results", tmp_path / "results", "--jobs=2"),
        cwd=lab.ROOT,
        env={**os.environ, "PYTHONPATH": str(lab.ROOT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def processes_of(folder: Path) -> list[str]:
    """Command lines of living processes that name the folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if str(folder) in line:
                found.append(line)
    return found


def mounts_of(folder: Path) -> list[str]:
    return [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(folder) in line]


def assert_clean(tmp_path: Path) -> None:
    deadline = time.monotonic() + GONE_WITHIN_S
    while time.monotonic() < deadline:
        if not processes_of(tmp_path / "results") and not (tmp_path / "results/.aside").exists():
            break
        time.sleep(0.1)
    assert processes_of(tmp_path / "results") == []
    assert mounts_of(tmp_path) == []
    assert not (tmp_path / "results/.aside").exists()
    for folder in (tmp_path / "results").glob("small/*"):
        assert (folder / "run.json").is_file(), f"{folder} is half a run"


@pytest.fixture(scope="module")
def whole(kernel: GuestKernel, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    return [lab.digests(run["path"]) for run in lab.runs(lab.execute(tmp_path_factory.mktemp("whole"), FOUR))]


@pytest.mark.parametrize("moment_s", MOMENTS_S)
def test_kill_9_leaves_nothing_and_running_again_completes(
    whole: list[dict[str, str]], tmp_path: Path, moment_s: float
) -> None:
    process = start(tmp_path)
    time.sleep(moment_s)
    process.kill()
    process.wait()
    assert_clean(tmp_path)
    folder = lab.execute(tmp_path, FOUR)
    assert [lab.digests(run["path"]) for run in lab.runs(folder)] == whole


def test_ctrl_c_ends_at_once_and_keeps_what_is_complete(kernel: GuestKernel, tmp_path: Path) -> None:
    process = start(tmp_path)
    while not (tmp_path / "results/.aside").exists():
        time.sleep(0.05)
        assert process.poll() is None
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(30) == 1
    assert_clean(tmp_path)


def test_what_a_killed_janitor_left_is_removed_by_the_next_run(kernel: GuestKernel, tmp_path: Path) -> None:
    left = tmp_path / "results/.aside/0123"
    (left / "raw").mkdir(parents=True)
    (left.with_suffix(".lock")).touch()
    lab.execute(tmp_path, lab.SMALL)
    assert not left.exists()


def test_a_second_run_does_nothing(small: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in small.rglob("*") if path.name != "report.html"}
    words = lab.warpbed("execute", small.parent.parent / "experiment.yml", "--results", small.parent)
    assert "nothing to do: all 1 runs are there" in words
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
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )
    wait_until(lambda: any(temporary.glob("warpbed-*/ansible-local-*")))
    process.kill()
    process.wait()
    wait_until(lambda: not any(temporary.iterdir()))


def wait_until(happened: Callable[[], bool], limit_s: float = 60.0) -> None:
    end = time.monotonic() + limit_s
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)
