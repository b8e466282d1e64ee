# SPDX-License-Identifier: Apache-2.0
"""The line between a traffic process and who started it.

In comes one line, `start N` (ns of CLOCK_MONOTONIC) or `at N` (ns of CLOCK_REALTIME); the end of the file means: finish
and tell your result. Out goes one line, `ready`, once the process can be started.
"""

from __future__ import annotations

import os
import select
import time


class Control:
    """A control file and the run's start (CLOCK_MONOTONIC, ns), 0 until it is known."""

    def __init__(self, fd: int, status_fd: int) -> None:
        self.fd, self._status_fd = fd, status_fd
        self.start_ns = 0
        self.ended = False
        self._text = b""

    def ready(self) -> None:
        """Tell that the process can be started."""
        os.write(self._status_fd, b"ready\n")

    def receive(self) -> None:
        """Read what there is."""
        data = os.read(self.fd, 4096)
        self.ended = self.ended or not data
        self._text += data
        while b"\n" in self._text:
            line, self._text = self._text.split(b"\n", 1)
            word, _, number = line.decode().partition(" ")
            if word == "start":
                self.start_ns = int(number)
            elif word == "at":
                self.start_ns = int(number) - time.clock_gettime_ns(time.CLOCK_REALTIME) + time.monotonic_ns()

    def wait_start(self) -> bool:
        """Wait for the start; False where the end came first."""
        while not self.start_ns and not self.ended:
            self.receive()
        return bool(self.start_ns)

    def has_ended(self) -> bool:
        """Whether to finish, without waiting."""
        if not self.ended and select.select([self.fd], [], [], 0)[0]:
            self.receive()
        return self.ended

    def realtime_start_ns(self) -> int:
        """The start on the clock of packets' time stamps, CLOCK_REALTIME."""
        return self.start_ns + time.clock_gettime_ns(time.CLOCK_REALTIME) - time.monotonic_ns()
