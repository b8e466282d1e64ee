# SPDX-License-Identifier: Apache-2.0
"""A play that a test awaits is gone when the wait is, with what it has started."""

from __future__ import annotations

import os
import signal
import subprocess
import threading

import pytest

from tests import plays
from tests.waiting import wait_until


def a_play() -> subprocess.Popen[str]:
    """In a session of its own, with a child that would outlive it; it says the child's process number."""
    line = ["sh", "-c", "sleep 1000 & echo $!; wait"]
    return subprocess.Popen(line, stdout=subprocess.PIPE, text=True, start_new_session=True)


def is_gone(number: int) -> bool:
    """Nobody awaits the child: what it leaves may stand there for a moment as a zombie."""
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(number)], capture_output=True, text=True, check=False)
    return done.stdout.strip()[:1] in ("", "Z")


def test_one_that_does_not_end_in_time() -> None:
    process = a_play()
    with pytest.raises(subprocess.TimeoutExpired) as ended:
        plays.end(process, timeout_s=1)
    assert ended.value.output is not None
    wait_until(lambda: is_gone(int(ended.value.output)), 20)
    assert process.returncode == -signal.SIGKILL


def test_one_whose_test_is_ended_by_its_own_limit() -> None:
    def limit(_number: int, _frame: object) -> None:
        raise TimeoutError("the test took too long")

    process = a_play()
    assert process.stdout is not None
    child = int(process.stdout.readline())
    before = signal.signal(signal.SIGUSR1, limit)
    try:
        sender = threading.Timer(1, os.kill, (os.getpid(), signal.SIGUSR1))
        sender.start()
        with pytest.raises(TimeoutError):
            plays.end(process, timeout_s=None)
        sender.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
    wait_until(lambda: is_gone(child), 20)
    assert process.returncode == -signal.SIGKILL
