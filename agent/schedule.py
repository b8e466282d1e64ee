# SPDX-License-Identifier: Apache-2.0
"""Call functions at given times of the monotonic clock, in order, in one thread."""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable


class Schedule:
    """A queue of functions with their due times (seconds of CLOCK_MONOTONIC)."""

    def __init__(self) -> None:
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._counter = itertools.count()
        self._stopped = False

    def at(self, when_s: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (when_s, next(self._counter), action))

    def every(self, first_s: float, interval_s: float, until_s: float, action: Callable[[], None]) -> None:
        """Call `action` at first_s, first_s + interval_s … up to until_s, without drift."""

        def tick(count: int) -> None:
            action()
            following = first_s + (count + 1) * interval_s
            if following <= until_s:
                self.at(following, lambda: tick(count + 1))

        self.at(first_s, lambda: tick(0))

    def stop(self) -> None:
        """Let `run` return as soon as the action that calls this has."""
        self._stopped = True

    def run(self, until_s: float) -> None:
        """Work through everything that is due up to until_s, then wait until then."""
        while not self._stopped and self._queue and self._queue[0][0] <= until_s:
            when, _, action = heapq.heappop(self._queue)
            sleep_until(when)
            action()
        if not self._stopped:
            sleep_until(until_s)


def sleep_until(when_s: float) -> None:
    while (rest := when_s - time.monotonic()) > 0:
        time.sleep(rest)
