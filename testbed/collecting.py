# SPDX-License-Identifier: Apache-2.0
"""Raw files to records, metrics and verdict in a process of its own, whose end is not this one's."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from base.linux import die_with_parent
from base.paths import ROOT

COLLECT_LEAST_S, COLLECT_BYTES_PER_S = 900.0, 2e5
"""How long collecting may take: a hundred times what a slow machine needs, so that only what hangs is ended."""
MEMORY_SHARE = 0.75
"""Of the machine's memory, for collecting what another machine has sent."""
TICK_S = 1.0


@dataclass(frozen=True)
class Trouble:
    """Why there are no records. is_disk: this machine's disk did not do what it was asked for; later it may"""

    detail: str
    is_disk: bool = False


def collect_apart(
    folder: Path, cpu: int | None = None, is_fetched: bool = False, heed: Callable[[], None] = lambda: None
) -> Trouble | None:
    """Make the records of a run folder; returns why there are none.

    cpu: the only one that is used
    is_fetched: another machine has made the raw files and may want to fill this one's memory: there is a limit, and where that is not
    enough the kernel ends the collecting first
    heed: called every second; what it raises ends the collecting. A terminal's Ctrl-C goes to that process too, which does not take
    it: the run is over, and its records are a matter of seconds.
    """
    raw_bytes = sum(file.stat().st_size for file in (folder / "raw").iterdir() if file.is_file())
    limit_s = COLLECT_LEAST_S + raw_bytes / COLLECT_BYTES_PER_S
    deadline = time.monotonic() + limit_s
    pinned = [] if cpu is None else ["taskset", "-c", str(cpu)]
    program = [sys.executable, "-m", "testbed.finish", str(folder), *(["--fetched"] if is_fetched else [])]
    mask = signal.pthread_sigmask(
        signal.SIG_BLOCK, [signal.SIGINT]
    )  # the process has this one, from its first moment on
    try:
        with subprocess.Popen(
            [*pinned, *program],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            cwd=ROOT,
            preexec_fn=_bounded if is_fetched else None,
        ) as process:
            try:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
                while True:
                    try:
                        output, _ = process.communicate(timeout=max(0.0, min(TICK_S, deadline - time.monotonic())))
                        return _trouble(process.returncode, output)
                    except subprocess.TimeoutExpired:
                        heed()
                        if time.monotonic() >= deadline:
                            return Trouble(f"not done after {limit_s:.0f} s with {raw_bytes / 1e6:.0f} MB of raw files")
            finally:
                process.kill()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _trouble(code: int, output: str) -> Trouble | None:
    if code == 0:
        return None
    if code < 0:
        return Trouble(f"ended by {signal.Signals(-code).name}; where that was the kernel, memory has run out")
    return Trouble("\n".join((output.strip() or f"exit code {code}").splitlines()[-8:]), is_disk=code == os.EX_IOERR)


def _bounded() -> None:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_DATA, (int(MEMORY_SHARE * memory),) * 2)
    with open("/proc/self/oom_score_adj", "w") as score:
        score.write("1000")
    die_with_parent()
