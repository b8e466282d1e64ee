# SPDX-License-Identifier: Apache-2.0
"""What an agent or a guest prints, line by line and with a bound on each line and on all that is kept: it may be a hostile one."""

from __future__ import annotations

from typing import BinaryIO

LONGEST_BYTES = 64 << 10
"""Of a line; the rest of a longer one is left out."""
KEPT_BYTES = 64 << 20
"""Of all that goes to the log: the first ones. Messages are understood beyond it."""


class Lines:
    """Cuts what comes into lines and keeps it in a log."""

    def __init__(self, log: BinaryIO, kept: int = KEPT_BYTES, longest: int = LONGEST_BYTES) -> None:
        self._log, self._left, self._longest = log, kept, longest
        self._rest = b""

    def take(self, data: bytes) -> list[str]:
        """The lines that have come to their end with these bytes."""
        self._keep(data)
        *ended, rest = data.split(b"\n")
        lines = []
        for piece in ended:
            lines.append(self._cut(piece).decode(errors="replace").rstrip("\r"))
            self._rest = b""
        self._rest = self._cut(rest)
        return lines

    def _cut(self, piece: bytes) -> bytes:
        return self._rest + piece[: self._longest - len(self._rest)]

    def _keep(self, data: bytes) -> None:
        if not self._left:
            return
        self._log.write(data[: self._left])
        self._left = max(0, self._left - len(data))
        if not self._left:
            self._log.write(b"\n[it said more than is kept of it; the rest is left out]\n")
        self._log.flush()
