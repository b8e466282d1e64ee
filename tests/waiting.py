# SPDX-License-Identifier: Apache-2.0
"""Wait, with a deadline, for something that another process does."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


def wait_until(
    happened: Callable[[], T],
    limit_s: float = 60.0,
    *,
    say: Callable[[], object] = lambda: "it did not happen",
    while_running: subprocess.Popen[Any] | None = None,
    every_s: float = 0.05,
) -> T:
    """The first answer of `happened` that counts as true; an AssertionError with `say()` where none comes in time.

    while_running: the process that is to do it; when it has ended, nothing is waited for any longer.
    """
    deadline = time.monotonic() + limit_s
    while True:
        has_ended = while_running is not None and while_running.poll() is not None
        if answer := happened():
            return answer
        assert not has_ended, f"the process has ended: {say()}"
        assert time.monotonic() < deadline, f"not within {limit_s:g} s: {say()}"
        time.sleep(every_s)
