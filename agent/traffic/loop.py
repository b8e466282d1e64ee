# SPDX-License-Identifier: Apache-2.0
"""An event loop with exact timers: epoll's own time-outs are milliseconds, a timerfd's are nanoseconds."""

from __future__ import annotations

import ctypes
import heapq
import itertools
import os
import select
import time
from collections.abc import Callable

from agent.traffic.control import Control

CLOCK_MONOTONIC = 1
TFD_TIMER_ABSTIME = 1
TFD_FLAGS = os.O_NONBLOCK | os.O_CLOEXEC
READ, WRITE = select.EPOLLIN | select.EPOLLRDHUP, select.EPOLLOUT
_libc = ctypes.CDLL(None, use_errno=True)


class Loop:
    """Calls functions at times (seconds since the run's start) and when files are ready, in one thread."""

    def __init__(self, control: Control) -> None:
        self.control = control
        self._epoll = select.epoll()
        self._actions: dict[int, Callable[[int], None]] = {}
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._counter = itertools.count()
        self._timer = _libc.timerfd_create(CLOCK_MONOTONIC, TFD_FLAGS)
        if self._timer < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self._armed_ns = 0
        self._stopped = False
        self._epoll.register(self._timer, select.EPOLLIN)
        self._epoll.register(control.fd, select.EPOLLIN)

    def now_s(self) -> float:
        return (time.monotonic_ns() - self.control.start_ns) / 1e9

    def at(self, when_s: float, action: Callable[[], None]) -> None:
        """Call `action` once, that many seconds after the run's start (which must be known)."""
        when_ns = self.control.start_ns + round(when_s * 1e9)
        heapq.heappush(self._queue, (when_ns, next(self._counter), action))

    def watch(self, fd: int, events: int, action: Callable[[int], None]) -> None:
        """Call `action` with the events whenever a file has some."""
        if fd in self._actions:
            self._epoll.modify(fd, events)
        else:
            self._epoll.register(fd, events)
        self._actions[fd] = action

    def forget(self, fd: int) -> None:
        """To be called before a file is closed."""
        if self._actions.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def stop(self) -> None:
        self._stopped = True

    def run(self) -> None:
        """Until `stop` is called or the control file ends."""
        while not self._stopped and not self.control.ended:
            self._arm()
            for fd, events in self._epoll.poll():
                if fd == self._timer:
                    os.read(self._timer, 8)
                    self._armed_ns = 0
                elif fd == self.control.fd:
                    self.control.receive()
                elif action := self._actions.get(fd):
                    action(events)
            self._due()

    def _due(self) -> None:
        now_ns = time.monotonic_ns()
        while self._queue and self._queue[0][0] <= now_ns and not self._stopped:
            heapq.heappop(self._queue)[2]()

    def _arm(self) -> None:
        if not self._queue or self._queue[0][0] == self._armed_ns:
            return
        self._armed_ns = self._queue[0][0]
        seconds, nanoseconds = divmod(max(1, self._armed_ns), 10**9)
        setting = (ctypes.c_long * 4)(0, 0, seconds, nanoseconds)
        if _libc.timerfd_settime(self._timer, TFD_TIMER_ABSTIME, setting, None):
            raise OSError(ctypes.get_errno(), "timerfd_settime")

    def close(self) -> None:
        self._epoll.close()
        os.close(self._timer)
