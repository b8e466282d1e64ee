# SPDX-License-Identifier: Apache-2.0
"""The session that a command runs in: what ends it, and the terminal that it shows its progress on."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Protocol


class Stoppable(Protocol):
    def cancel(self) -> None: ...


def stop_on_signals(runner: Stoppable) -> None:
    """Cancel when told to by a signal or, below Ansible, by the end of standard input."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: runner.cancel())
    if os.environ.get("WARPBED_STOP_AT_EOF") == "1":

        def wait() -> None:
            while os.read(sys.stdin.fileno(), 4096):  # unbuffered: a lock held at exit would abort the interpreter
                pass
            runner.cancel()

        threading.Thread(target=wait, daemon=True).start()


@contextlib.contextmanager
def ignored(number: int) -> Iterator[None]:
    """The body, and what is started in it, ignores a signal."""
    before = signal.signal(number, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(number, before)


def terminal() -> str | None:
    if named := os.environ.get("WARPBED_TERMINAL"):
        return named
    return os.ttyname(sys.stderr.fileno()) if sys.stderr.isatty() and sys.stdout.isatty() else None
