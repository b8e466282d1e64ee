# SPDX-License-Identifier: Apache-2.0
"""Raw files to records, metrics and verdict in a process of its own, whose end is not this one's."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from base.linux import die_with_parent
from base.paths import ROOT
from testbed.forks import Call, Forks, without_interrupts

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


@contextlib.contextmanager
def finishing() -> Iterator[Forks]:
    """What makes the records of runs that are made here (`collect_apart`). It imports while the first of them runs."""
    forks = Forks("testbed.finish")
    forks.start()
    try:
        yield forks
    finally:
        forks.end()


def collect_apart(folder: Path, forks: Forks, cpu: int) -> Trouble | None:
    """Make the records of a run that was made here; returns why there are none.

    cpu: the only one that is used
    A terminal's Ctrl-C does not end it: the run is over, and its records are a matter of seconds.
    """
    return _ended(folder, forks.call([str(folder)], cpu), lambda: None)


def collect_fetched(folder: Path, heed: Callable[[], None]) -> Trouble | None:
    """Make the records of what another machine has sent; returns why there are none.

    It may be meant to fill this one's memory: there is a limit, and where that is not enough the kernel ends the collecting first.
    heed: called every second; what it raises ends the collecting, which does not take a terminal's Ctrl-C itself
    """
    return _ended(folder, _bounded_call([str(folder), "--fetched"]), heed)


def _ended(folder: Path, begun: AbstractContextManager[Call | _Bounded], heed: Callable[[], None]) -> Trouble | None:
    raw_bytes = sum(file.stat().st_size for file in (folder / "raw").iterdir() if file.is_file())
    limit_s = COLLECT_LEAST_S + raw_bytes / COLLECT_BYTES_PER_S
    deadline = time.monotonic() + limit_s
    with begun as call:
        while True:
            try:
                ended = call.wait(max(0.0, min(TICK_S, deadline - time.monotonic())))
            except ChildProcessError as error:
                return Trouble(str(error))
            if ended is not None:
                return _trouble(*ended)
            heed()
            if time.monotonic() >= deadline:
                return Trouble(f"not done after {limit_s:.0f} s with {raw_bytes / 1e6:.0f} MB of raw files")


class _Bounded:
    """A call like those of testbed.forks, in a new process with limits: what it reads may be meant to harm."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def wait(self, timeout_s: float) -> tuple[int, str] | None:
        try:
            output, _ = self._process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            return None
        return self._process.returncode, output


@contextlib.contextmanager
def _bounded_call(words: list[str]) -> Iterator[_Bounded]:
    with contextlib.ExitStack() as stack:
        with without_interrupts():
            process = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-m", "testbed.finish", *words],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                    errors="replace",
                    cwd=ROOT,
                    preexec_fn=_bounded,
                )
            )
            stack.callback(process.kill)
        yield _Bounded(process)


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
