# SPDX-License-Identifier: Apache-2.0
"""The clean-up watcher: it acts when its caller ends, however that comes about, and never before."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from base.paths import ROOT
from base.watcher import BY_ITSELF, remove_folder, start, watched_folder, watching
from tests.waiting import wait_until

CALLER = """
import os, sys, time
from base.watcher import start
from tests.unit.test_watcher import leave_a_mark
watcher = start(leave_a_mark, sys.argv[1], told=True)
if sys.argv[2] == "forks" and not os.fork():  # a copy of this process holds the watcher's standard input open
    os.close(1)
    time.sleep(60)
print(watcher.pid, flush=True)
time.sleep(60)
"""


def leave_a_mark(file: str, ended: str = "") -> None:
    """What the watchers of these tests do."""
    with open(file, "a") as mark:
        mark.write(f"cleaned up {ended}".strip() + "\n")


def test_it_acts_at_the_end_of_the_body_once_and_not_before(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with watching(leave_a_mark, str(mark)):
        assert not mark.exists()
    assert mark.read_text() == "cleaned up\n"


def test_it_acts_where_the_body_fails(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), watching(leave_a_mark, str(tmp_path / "mark")):
        _ = 1 / 0
    assert (tmp_path / "mark").exists()


def test_it_is_told_that_the_caller_came_to_its_end(tmp_path: Path) -> None:
    """One that was killed says nothing: the test after this."""
    mark = tmp_path / "mark"
    with watching(leave_a_mark, str(mark), told=True):
        pass
    assert mark.read_text() == f"cleaned up {BY_ITSELF}\n"


@pytest.mark.parametrize("child", ["none", "forks"])
def test_it_acts_where_the_caller_is_killed_also_beside_a_copy_of_it(child: str, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    with subprocess.Popen(
        [sys.executable, "-c", CALLER, mark, child], stdout=subprocess.PIPE, cwd=ROOT, start_new_session=True
    ) as caller:
        assert caller.stdout is not None
        watcher = int(caller.stdout.readline())
        assert os.getsid(watcher) != os.getsid(caller.pid)
        assert not mark.exists()
        caller.kill()
        wait_until(lambda: mark.exists() and mark.read_text())  # one write, whole once anything of it is there
        os.killpg(caller.pid, signal.SIGKILL)
    assert mark.read_text() == "cleaned up\n"


def test_what_a_terminal_or_a_shutdown_sends_does_not_end_it(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    watcher = start(leave_a_mark, str(mark))
    assert watcher.stdin is not None
    ignored = sum(1 << (number - 1) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))
    status = Path(f"/proc/{watcher.pid}/status")

    def ignores() -> bool:
        (mask,) = (int(line.split()[1], 16) for line in status.read_text().splitlines() if line.startswith("SigIgn:"))
        return mask & ignored == ignored

    wait_until(ignores)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        watcher.send_signal(number)
    assert watcher.poll() is None and not mark.exists()
    watcher.stdin.close()
    assert watcher.wait() == 0 and mark.exists()


def test_a_folder_goes_also_where_somebody_writes_into_it_for_a_moment_yet(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    writer = "import sys, time, pathlib\nfor i in range(100):\n    pathlib.Path(sys.argv[1], str(i)).write_text('')\n    time.sleep(0.01)"
    with subprocess.Popen([sys.executable, "-c", writer, folder], stderr=subprocess.DEVNULL):
        wait_until((folder / "1").exists)
        with watching(remove_folder, str(folder)):
            assert folder.exists()
        assert not folder.exists()


@pytest.mark.parametrize("killed", [False, True])
def test_a_watched_folder_goes_with_the_body_or_the_process(tmp_path: Path, killed: bool) -> None:
    process = os.fork()
    if process == 0:
        with watched_folder("aside-", tmp_path) as folder:
            (folder / "archive").write_text("half")
            if killed:
                os.kill(os.getpid(), signal.SIGKILL)
        os._exit(len(list(tmp_path.iterdir())))
    _, status = os.waitpid(process, 0)
    assert os.WIFSIGNALED(status) is killed
    assert killed or os.waitstatus_to_exitcode(status) == 0
    wait_until(lambda: not list(tmp_path.iterdir()))
