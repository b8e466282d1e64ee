# SPDX-License-Identifier: Apache-2.0
"""What a run changes of a lab's machine is as before when its agent has ended, also by kill -9."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from agent import algorithms, left_behind
from tests.waiting import wait_until


@pytest.fixture
def sysctl(tmp_path: Path) -> Path:
    file = tmp_path / "allowed"
    file.write_text("reno\n")
    return file


@pytest.mark.parametrize("killed", [False, True])
def test_a_sysctl_of_a_labs_machine_is_written_back(sysctl: Path, killed: bool) -> None:
    agent = os.fork()
    if agent == 0:
        with left_behind.watched():
            for value in ("reno cubic\n", "reno cubic medley\n"):
                algorithms.note(sysctl, "s1")
                sysctl.write_text(value)
            if killed:
                os.kill(os.getpid(), signal.SIGKILL)
        os._exit(0)
    _, status = os.waitpid(agent, 0)
    assert os.WIFSIGNALED(status) is killed
    wait_until(lambda: sysctl.read_text() == "reno\n", 10)


def test_a_machine_that_is_the_whole_network_is_left_to_its_host(sysctl: Path) -> None:
    """The local host has a list of its own, which must not be written twice."""
    agent = os.fork()
    if agent == 0:
        with left_behind.watched():
            algorithms.note(sysctl, None)
            sysctl.write_text("reno cubic\n")
        os._exit(0)
    os.waitpid(agent, 0)
    assert sysctl.read_text() == "reno cubic\n"
