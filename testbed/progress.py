# SPDX-License-Identifier: Apache-2.0
"""Report progress: one line per event, and a bar on a terminal."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, TextIO

from base.text import clean

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

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
        self._bar: Bar | None = None
        if terminal:
            try:
                self._bar = _bar(open(terminal, "w"))
            except OSError:
                self._bar = None

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
        if kind == "kept":
            self._line(f"{run}: {event['message']}")
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
        print(clean(text), file=self._lines, flush=True)

    def _clear(self) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _draw(self) -> None:
        self._drawn = time.monotonic()
        if self._bar is None:
            return
        virtual_s = self._virtual_done_s + sum(self._running.values())
        share = min(1.0, virtual_s / self._total_virtual_s) if self._total_virtual_s else 1.0
        elapsed_s = self._drawn - self._started
        left = f", {elapsed_s * (1 - share) / share:.0f} s left" if share > 0.02 else ""
        self._bar.update(
            self._bar.task_ids[0],
            completed=share,
            description=(
                f"{self._finished}/{self._total} runs, {virtual_s:.0f} of {self._total_virtual_s:.0f} virtual s, "
                f"{virtual_s / max(elapsed_s, 0.1):.1f}x{left}"
            ),
        )
        self._bar.start()
        self._bar.refresh()

    def close(self) -> None:
        with self._lock:
            self._clear()
            if self._bar is not None:
                self._bar.console.file.close()
                self._bar = None


def _bar(terminal: TextIO) -> Bar:
    """A bar on a terminal that is not this process's own standard output, drawn when it is told to, without a thread."""
    # imported here: rich takes longer to load than most commands take
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar
    from rich.table import Column

    bar = Bar(
        BarColumn(BAR_WIDTH),
        TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")),
        console=Console(file=terminal, force_terminal=True, legacy_windows=False),
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    bar.add_task("", total=1.0)
    return bar
