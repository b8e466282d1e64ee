# SPDX-License-Identifier: Apache-2.0
"""Kernel messages during an operation: the details that an exit code lacks."""

from __future__ import annotations

import os
from types import TracebackType

RECORD_BYTES = 8192
"""The longest record that /dev/kmsg gives."""


class KernelLog:
    """`with KernelLog() as log: …; log.words()`: what was logged since; "" where the log may not be read."""

    def __enter__(self) -> KernelLog:
        try:
            self._kmsg = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
            os.lseek(self._kmsg, 0, os.SEEK_END)
        except OSError:
            self._kmsg = -1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._kmsg >= 0:
            os.close(self._kmsg)

    def words(self) -> str:
        """The messages, a line each."""
        lines: list[str] = []
        while self._kmsg >= 0:
            try:
                record = os.read(self._kmsg, RECORD_BYTES).decode(errors="replace")
            except BrokenPipeError:
                continue  # older records were overwritten meanwhile
            except OSError:
                break
            lines.append(record.partition(";")[2].partition("\n")[0])
        return "\n".join(lines)
