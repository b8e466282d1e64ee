# SPDX-License-Identifier: Apache-2.0
"""Watch, in real time, whether the host keeps up: CPU headroom, packets that softirqs dropped, lateness of timers.

python3 -B -P -m agent.monitor      watches until its standard input ends, then prints what it saw as JSON
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

TICK_S = 0.01
WINDOW_S = 1.0
IDLE_FIELDS = (3, 4)
"""Fields of a cpu line of /proc/stat that are not work: idle and iowait."""


class Monitor:
    """A process of its own, so that the agent's work does not make it late."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-B", "-P", "-m", "agent.monitor"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).resolve().parents[1],
        )

    def stop(self) -> dict[str, Any]:
        """End it; returns what it saw (see `watch`)."""
        output, _ = self._process.communicate(timeout=30)
        seen: dict[str, Any] = json.loads(output)
        return seen

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def _cpu_ticks() -> list[tuple[int, int]]:
    """(busy, all) clock ticks of each CPU since boot; time that a hypervisor took counts as busy."""
    rows = []
    for line in Path("/proc/stat").read_text().splitlines():
        if line.startswith("cpu") and line[3].isdigit():
            fields = [int(word) for word in line.split()[1:9]]
            rows.append((sum(fields) - sum(fields[i] for i in IDLE_FIELDS), sum(fields)))
    return rows


def _softnet() -> tuple[int, int]:
    """Packets dropped because a CPU's backlog was full, and times that a softirq ran out of its time, since boot."""
    rows = [line.split() for line in Path("/proc/net/softnet_stat").read_text().splitlines()]
    return sum(int(row[1], 16) for row in rows), sum(int(row[2], 16) for row in rows)


def watch(stop_fd: int) -> dict[str, Any]:
    """Watch until stop_fd can be read.

    cpu_busy_max: busiest second of the busiest CPU, 0 to 1; timer_late_*_us: how late a timer of 10 ms woke this process
    """
    late_us: list[float] = []
    busiest = 0.0
    dropped, squeezed = _softnet()
    first = last = _cpu_ticks()
    due = window_end = time.monotonic()
    window_end += WINDOW_S
    while not select.select([stop_fd], [], [], 0)[0]:
        due += TICK_S
        if (rest := due - time.monotonic()) > 0:
            time.sleep(rest)
        now = time.monotonic()
        late_us.append((now - due) * 1e6)
        due = max(due, now - TICK_S)
        if now >= window_end:
            here = _cpu_ticks()
            busiest = max(busiest, _busiest(last, here))
            last, window_end = here, now + WINDOW_S
    late_us.sort()
    after_dropped, after_squeezed = _softnet()
    return {
        "cpus": len(first),
        "cpu_busy_max": round(max(busiest, 0.0), 4),
        "cpu_busy_mean": round(_mean(first, _cpu_ticks()), 4),
        "softnet_dropped": after_dropped - dropped,
        "softnet_squeezed": after_squeezed - squeezed,
        "timers": len(late_us),
        "timer_late_p50_us": round(late_us[len(late_us) // 2], 1) if late_us else 0.0,
        "timer_late_p99_us": round(late_us[int(len(late_us) * 0.99)], 1) if late_us else 0.0,
        "timer_late_max_us": round(late_us[-1], 1) if late_us else 0.0,
    }


def _shares(before: list[tuple[int, int]], after: list[tuple[int, int]]) -> list[float]:
    pairs = zip(before, after, strict=True)
    return [(b[0] - a[0]) / (b[1] - a[1]) for a, b in pairs if b[1] > a[1]]


def _busiest(before: list[tuple[int, int]], after: list[tuple[int, int]]) -> float:
    return max(_shares(before, after), default=0.0)


def _mean(before: list[tuple[int, int]], after: list[tuple[int, int]]) -> float:
    shares = _shares(before, after)
    return sum(shares) / len(shares) if shares else 0.0


def main() -> int:
    try:  # lateness of the kernel's timers is looked for, not that of its scheduler
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError:
        pass
    print(json.dumps(watch(sys.stdin.fileno())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
