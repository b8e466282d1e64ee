# SPDX-License-Identifier: Apache-2.0
"""Calls in processes of their own that have imported everything: what they say, how they end, and that none is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from base.paths import ROOT
from testbed.forks import MESSAGE_BYTES, Forks
from tests import shell_calls
from tests.waiting import wait_until

LONG_S = 60.0


@pytest.fixture
def forks() -> Iterator[Forks]:
    made = Forks(shell_calls.__name__)
    yield made
    made.end()


def scripted(folder: Path, script: str) -> list[str]:
    """The words of a call that is this shell script."""
    folder.mkdir()
    (folder / shell_calls.SCRIPT).write_text(script)
    return [str(folder / "run")]


def pid_in(file: Path) -> int:
    wait_until(lambda: file.exists() and file.read_text().endswith("\n"), LONG_S)
    return int(file.read_text())


def is_there(pid: int) -> bool:
    """Whether there is a process of that number that has not ended."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_each_call_has_its_own_exit_code_output_and_cpu(tmp_path: Path, forks: Forks) -> None:
    cpu = max(os.sched_getaffinity(0))
    first = scripted(tmp_path / "first", "echo one; echo two >&2; grep Cpus_allowed_list /proc/$$/status; exit 3")
    second = scripted(tmp_path / "second", "exec sleep 600")
    with forks.call(second) as longer:
        with forks.call(first, cpu) as call:
            assert call.wait(LONG_S) == (3, f"one\ntwo\nCpus_allowed_list:\t{cpu}\n")
        assert longer.wait(0.0) is None


def test_all_are_forked_from_one_process(tmp_path: Path, forks: Forks) -> None:
    said = []
    for name in ("first", "second"):
        with forks.call(scripted(tmp_path / name, "echo $PPID")) as call:
            said.append(call.wait(LONG_S))
    assert said[0] == said[1] is not None


def test_a_call_that_is_left_is_killed(tmp_path: Path, forks: Forks) -> None:
    with forks.call(scripted(tmp_path / "a", f"echo $$ > {tmp_path}/pid; exec sleep 600")):
        pid = pid_in(tmp_path / "pid")
        assert is_there(pid)
    wait_until(lambda: not is_there(pid), LONG_S)


def test_where_the_process_that_forks_is_killed_its_calls_end_and_the_next_call_has_a_new_one(
    tmp_path: Path, forks: Forks
) -> None:
    with forks.call(scripted(tmp_path / "a", f"echo $PPID > {tmp_path}/pid; exec sleep 600")) as call:
        os.kill(pid_in(tmp_path / "pid"), signal.SIGKILL)
        with pytest.raises(ChildProcessError):
            call.wait(LONG_S)
    with forks.call(scripted(tmp_path / "b", "exit 5")) as call:
        assert call.wait(LONG_S) == (5, "")


def test_kill_9_of_the_caller_leaves_neither_that_process_nor_a_call(tmp_path: Path) -> None:
    words = scripted(tmp_path / "a", f"echo $PPID > {tmp_path}/server; echo $$ > {tmp_path}/pid; exec sleep 600")
    program = f"from testbed.forks import Forks; Forks({shell_calls.__name__!r}).call({words!r}).wait(600)"
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT) as caller:
        pids = [pid_in(tmp_path / name) for name in ("server", "pid")]
        caller.kill()
    wait_until(lambda: not any(map(is_there, pids)), LONG_S)


def test_words_that_do_not_fit_are_refused(forks: Forks) -> None:
    with pytest.raises(ValueError, match="at most 65536"):
        forks.call(["x" * (MESSAGE_BYTES + 1)])


def test_a_module_that_cannot_be_imported_ends_the_call(capfd: pytest.CaptureFixture[str]) -> None:
    forks = Forks("tests.unit.absent")
    with forks.call([]) as call, pytest.raises(ChildProcessError):
        call.wait(LONG_S)
    forks.end()
    assert "tests.unit.absent" in capfd.readouterr().err
