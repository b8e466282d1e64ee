# SPDX-License-Identifier: Apache-2.0
"""What a program on another machine prints, with a bound: that machine may be a hostile one, and this one's memory is not its own."""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from collections.abc import Sequence
from typing import IO

MOST_BYTES = 4 << 20
"""An answer has some thousand; parsed, such a one takes twenty times as much memory."""
LAST_BYTES = 64 << 10
"""Of error messages, of which the last line is told."""
CHUNK_BYTES = 1 << 16


class TooMuchError(Exception):
    """The program printed more than any of ours does; it has been ended."""


class Printed:
    """Takes all that a process prints on a stream, so that it never waits for a reader.

    most: bytes that are kept, the last ones
    ends: the process, where it is ended as soon as there are more
    """

    def __init__(self, stream: IO[bytes], most: int, ends: subprocess.Popen[bytes] | None = None) -> None:
        self._stream, self._most, self._ends = stream, most, ends
        self._kept = bytearray()
        self.is_too_much = False
        self._thread = threading.Thread(target=self._take, daemon=True)
        self._thread.start()

    def until(self, deadline_s: float) -> bytes:
        """What is kept, once the stream has ended. Raises TimeoutError."""
        self._thread.join(max(0.0, deadline_s - time.monotonic()))
        if self._thread.is_alive():
            raise TimeoutError
        return bytes(self._kept)

    def kept(self, patience_s: float = 1.0) -> bytes:
        """What has come, once the stream has ended, or after some time where something else holds it."""
        self._thread.join(patience_s)
        return bytes(self._kept)

    def _take(self) -> None:
        with contextlib.suppress(OSError, ValueError), self._stream:  # closed by who does not wait any more
            while chunk := self._stream.read(CHUNK_BYTES):
                self._kept += chunk
                if len(self._kept) > self._most and self._ends is not None:
                    self.is_too_much = True
                    self._ends.kill()
                    return
                del self._kept[: -self._most]


def call(
    command: Sequence[str], data: bytes, timeout_s: float, most: int = MOST_BYTES
) -> subprocess.CompletedProcess[bytes]:
    """Run a program to its end, whatever its exit code. Raises subprocess.TimeoutExpired, TooMuchError."""
    pipe, deadline_s = subprocess.PIPE, time.monotonic() + timeout_s
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        output, errors = Printed(process.stdout, most, process), Printed(process.stderr, LAST_BYTES)
        threading.Thread(target=_give, args=(process.stdin, data), daemon=True).start()
        try:
            code = process.wait(timeout_s)
            if output.is_too_much:
                raise TooMuchError(f"it answers with more than {most >> 20} MiB")
            return subprocess.CompletedProcess(command, code, output.until(deadline_s), errors.until(deadline_s))
        except TimeoutError as error:  # a child of its own holds the stream
            raise subprocess.TimeoutExpired(command, timeout_s) from error
        finally:
            process.kill()


def _give(stream: IO[bytes], data: bytes) -> None:
    left = memoryview(data)
    with contextlib.suppress(OSError, ValueError):  # it has ended, and its exit code says more
        while left:
            left = left[stream.write(left) :]
        stream.close()
