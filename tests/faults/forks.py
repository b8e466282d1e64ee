# SPDX-License-Identifier: Apache-2.0
"""Do a case's work in a child, so that this process, which forks again and again, never has threads of its own."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable

LONGEST_S = 120


def forked(work: Callable[[], int]) -> tuple[int, str]:
    """Do the work in a child; its exit code, and what it printed."""
    with tempfile.TemporaryFile() as words:
        child = os.fork()
        if child == 0:
            os.dup2(words.fileno(), 1)
            os.dup2(words.fileno(), 2)
            signal.alarm(LONGEST_S)  # every wait has an end
            try:
                code = work()
            except BaseException:  # noqa: BLE001 — what a command would have printed
                traceback.print_exc()
                code = 99
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        _, status = os.waitpid(child, 0)
        words.seek(0)
        return os.waitstatus_to_exitcode(status), words.read().decode(errors="replace")
