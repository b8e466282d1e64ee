# SPDX-License-Identifier: Apache-2.0
"""An end to waiting for what another machine sends: a stuck or hostile one that keeps its connection alive holds nobody up."""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from typing import IO

LEAST_BYTES_PER_S = 1e5
"""What has come gives this much more time: a slow path is no stuck machine."""


class Deadline:
    """Ends a process whose output is not whole in time, and `reason` then says so, or whose output nobody wants any more.

    limit_s: for the first byte as for the whole, before what has come gives more
    heed: asked every second; what it raises ends the process, and is raised at the end of `over`
    """

    def __init__(self, limit_s: float, heed: Callable[[], None] = lambda: None) -> None:
        self._limit_s, self._begun_s, self._heed = limit_s, time.monotonic(), heed
        self._bytes = 0
        self._is_over = threading.Event()
        self._told: Exception | None = None
        self.reason = ""

    @contextlib.contextmanager
    def over(self, process: subprocess.Popen[bytes]) -> Iterator[None]:
        """Watch a process until the end of the block."""
        watch = threading.Thread(target=self._watch, args=(process,), daemon=True)
        watch.start()
        try:
            yield
        finally:
            self._is_over.set()
            watch.join()
            if self._told is not None:
                raise self._told

    def counted(self, stream: IO[bytes]) -> _Counted:
        """The stream, whose bytes give more time."""
        return _Counted(stream, self)

    def came(self, size: int) -> None:
        """So many bytes have come."""
        self._bytes += size

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        while not self._is_over.wait(max(0.0, min(self._left_s(), 1.0))):
            try:
                self._heed()
            except Exception as error:  # noqa: BLE001 — it belongs to the thread that reads
                self._told = error
                process.kill()
                return
            if self._left_s() <= 0:
                self.reason = f"not done after {time.monotonic() - self._begun_s:.0f} s"
                process.kill()  # what reads from it then sees its end
                return

    def _left_s(self) -> float:
        return self._begun_s + self._limit_s + self._bytes / LEAST_BYTES_PER_S - time.monotonic()


class _Counted:
    """As much of a binary stream as tarfile reads of it."""

    def __init__(self, stream: IO[bytes], deadline: Deadline) -> None:
        self._stream, self._deadline = stream, deadline

    def read(self, size: int = -1) -> bytes:
        chunk = self._stream.read(size)
        self._deadline.came(len(chunk))
        return chunk
