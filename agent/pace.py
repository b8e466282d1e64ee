# SPDX-License-Identifier: Apache-2.0
"""When a run's steps happen: at once where one host is the whole network, at the controller's word where it is one of
several machines.

The controller's words are lines of standard input. At a gate the agent says its name and waits for `go NAME`; the last gate
is `start NS`, in nanoseconds of this machine's own CLOCK_REALTIME. `time` is answered at any moment with both clocks, so that
the controller knows how far this machine's is off. The end of standard input ends the agent.
"""

from __future__ import annotations

import math
import os
import queue
import sys
import threading
import time
from collections.abc import Callable


class Alone:
    """One host is the whole network: nobody to wait for."""

    def gate(self, name: str) -> None:
        """Pass at once."""

    def start_s(self, settle_s: float, grid_s: int) -> float:
        """The run's start on CLOCK_MONOTONIC: the next point of the grid, at least settle_s from now."""
        return math.ceil((time.monotonic() + settle_s) / grid_s) * grid_s


class Together(Alone):
    """One machine of several."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self._words: queue.SimpleQueue[list[str]] = queue.SimpleQueue()

    def listen(self) -> None:
        """Read the controller's lines in a thread; the end of them ends this process and all that it has started."""
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in sys.stdin:
            fields = line.split()
            if fields == ["time"]:
                self._report(f"time {time.clock_gettime_ns(time.CLOCK_REALTIME)} {time.monotonic_ns()}")
            elif fields:
                self._words.put(fields)
        os._exit(1)

    def gate(self, name: str) -> None:
        self._report(f"at {name}")
        self._wait("go", name)

    def start_s(self, settle_s: float, grid_s: int) -> float:
        self._report("at start")
        (start_ns,) = self._wait("start")
        return time.monotonic() + (int(start_ns) - time.clock_gettime_ns(time.CLOCK_REALTIME)) / 1e9

    def _wait(self, *expected: str) -> list[str]:
        while True:
            words = self._words.get()
            if words[: len(expected)] == list(expected):
                return words[len(expected) :]
