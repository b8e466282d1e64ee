# SPDX-License-Identifier: Apache-2.0
"""Report progress: one line per event, and a bar on a terminal."""

from __future__ import annotations

import os
import threading
import time
from typing import Any, TextIO

BAR_WIDTH = 24
REDRAW_S = 0.2


class Progress:
    """Takes the runner's events.

    lines: where events are written, a line each
    terminal: path of a terminal for the bar; None draws none
    """

    def __init__(self, total: int, total_virtual_s: float, lines: TextIO, terminal: str | None) -> None:
        self._total, self._total_virtual_s, self._lines = total, total_virtual_s, lines
        self._finished, self._virtual_done_s = 0, 0.0
        self._running: dict[str, float] = {}
        self._started = time.monotonic()
        self._drawn = 0.0
        self._lock = threading.Lock()
        self._terminal: TextIO | None = None
        if terminal:
            try:
                self._terminal = open(terminal, "w")
            except OSError:
                self._terminal = None

    def expect(self, durations_s: list[float]) -> None:
        """So many runs more, each of so much virtual time."""
        with self._lock:
            self._total += len(durations_s)
            self._total_virtual_s += sum(durations_s)

    def event(self, event: dict[str, Any]) -> None:
        with self._lock:
            self._take(event)

    def _take(self, event: dict[str, Any]) -> None:
        kind, run = event["event"], event["run"]
        if kind in ("started", "progress"):
            self._running[run] = event.get("virtual_s", 0.0)
            if kind == "progress" and time.monotonic() - self._drawn > REDRAW_S:
                self._draw()
            return
        self._finished += 1
        self._virtual_done_s += event.get("of_s", 0.0)
        self._running.pop(run, None)
        place = f"[{self._finished}/{self._total}] {run}"
        if kind == "done":
            self._line(
                f"{place}: {event['of_s']:g} s of virtual time in {event['wall_s']:.1f} s ({event['speed']:.1f} times real time)"
            )
        else:
            self._line(f"{place}: failed: {event['message']}")
        self._draw()

    def _line(self, text: str) -> None:
        self._clear()
        print(text, file=self._lines, flush=True)

    def _clear(self) -> None:
        if self._terminal is not None:
            self._terminal.write("\r\x1b[K")
            self._terminal.flush()

    def _draw(self) -> None:
        self._drawn = time.monotonic()
        if self._terminal is None:
            return
        virtual = self._virtual_done_s + sum(self._running.values())
        share = min(1.0, virtual / self._total_virtual_s) if self._total_virtual_s else 1.0
        elapsed = self._drawn - self._started
        left = f", {elapsed * (1 - share) / share:.0f} s left" if share > 0.02 else ""
        bar = "#" * round(share * BAR_WIDTH)
        text = f"[{bar:<{BAR_WIDTH}}] {self._finished}/{self._total} runs, {virtual:.0f} of {self._total_virtual_s:.0f} virtual s, {virtual / max(elapsed, 0.1):.1f}x{left}"
        width = _width(self._terminal)
        self._terminal.write("\r\x1b[K" + text[: width - 1])
        self._terminal.flush()

    def close(self) -> None:
        with self._lock:
            self._clear()
            if self._terminal is not None:
                self._terminal.close()
                self._terminal = None


def _width(terminal: TextIO) -> int:
    try:
        return os.get_terminal_size(terminal.fileno()).columns
    except OSError:
        return 80
