# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import subprocess
import time

import pytest

from tests.waiting import wait_until


def test_the_first_true_answer_is_returned() -> None:
    answers = iter([0, "", None, 7, 8])
    assert wait_until(lambda: next(answers), every_s=0) == 7


def test_after_the_deadline_it_fails_and_says_what_is_left() -> None:
    started = time.monotonic()
    with pytest.raises(AssertionError, match=r"not within 0\.1 s: two are left"):
        wait_until(lambda: False, 0.1, say=lambda: "two are left")
    assert time.monotonic() - started >= 0.1


def test_nothing_is_waited_for_when_its_process_has_ended() -> None:
    with subprocess.Popen(["true"]) as process:
        with pytest.raises(AssertionError, match="the process has ended"):
            wait_until(lambda: False, 600, while_running=process)
        assert wait_until(lambda: "done before it ended", while_running=process)
