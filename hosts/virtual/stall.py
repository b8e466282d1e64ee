# SPDX-License-Identifier: Apache-2.0
"""When a guest whose clock stands still is given up."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

STALL_CPU_S = float(os.environ.get("WARPBED_STALL_S", "90"))
"""CPU time that a guest may use without its clock moving on by a second: beyond it, it busy-loops."""
STALL_WALL_S = 900.0
"""How long a guest may sleep without its clock moving on. One that waits for a CPU does not sleep."""
AWAKE = 0.25
"""Share of that time in which a guest that has work to do is executed or waits for a CPU."""


class Stall:
    """Patience in virtual time: a guest that uses CPU time while its clock stands still busy-loops, one that sleeps is not woken any more.

    A guest that others leave no CPU has all the time it needs.
    """

    who = "guest"

    def __init__(self, pid: int, patience: float = 1.0) -> None:
        """patience: how many times as long a guest may take as one that the computer's own CPU executes"""
        self._pid, self._patience = pid, patience
        self._wall, self._cpu_s, self._waited_s = time.monotonic(), 0.0, 0.0

    def moved(self) -> None:
        self._wall, self._cpu_s, self._waited_s = time.monotonic(), cpu_s(self._pid), waited_s(self._pid)

    def exhausted(self, virtual_s: float) -> str | None:
        used, since = cpu_s(self._pid) - self._cpu_s, time.monotonic() - self._wall
        where = f"no progress for {since:.0f} s ({used:.0f} s of CPU) at {virtual_s:g} virtual seconds"
        if used > self._patience * STALL_CPU_S:
            return f"{where}: something in the guest busy-loops, which virtual time cannot pass"
        if since <= self._patience * STALL_WALL_S or used + waited_s(self._pid) - self._waited_s > AWAKE * since:
            return None
        if is_runnable(self._pid):  # the kernel counts a wait for a CPU only when it is over
            return None
        return f"{where}: the guest sleeps, and nothing wakes it"


def cpu_s(pid: int) -> float:
    """CPU seconds of a process and all that descend from it, living or reaped."""
    total = 0
    for here in (pid, *descendants(pid)):
        try:
            fields = Path(f"/proc/{here}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        total += sum(int(value) for value in fields[11:15])
    return total / os.sysconf("SC_CLK_TCK")


def waited_s(pid: int) -> float:
    """Seconds that the threads of a process and of all that descend from it had work to do and no CPU, of those that live."""
    total = 0
    for here in (pid, *descendants(pid)):
        for times in _of_threads(here, "schedstat"):
            with contextlib.suppress(IndexError):  # a kernel without CONFIG_SCHED_INFO
                total += int(times.split()[1])
    return total / 1e9


def is_runnable(pid: int) -> bool:
    """Whether a thread of a process or of one that descends from it is executed or waits for a CPU at this moment."""
    return any(
        state.rsplit(")", 1)[1].split()[0] == "R"
        for here in (pid, *descendants(pid))
        for state in _of_threads(here, "stat")
    )


def descendants(pid: int) -> Iterator[int]:
    """The processes below one, those that live."""
    for children in _of_threads(pid, "children"):
        for child in children.split():
            yield int(child)
            yield from descendants(int(child))


def _of_threads(pid: int, file: str) -> Iterator[str]:
    """What a file of /proc says of each thread of a process. A process or a thread may end while it is being asked: it says nothing."""
    folder = f"/proc/{pid}/task"
    try:
        threads = os.listdir(folder)  # not Path.glob, which fails where the folder goes meanwhile
    except OSError:
        return
    for thread in threads:
        try:
            text = Path(folder, thread, file).read_text()
        except OSError:
            continue
        yield text
