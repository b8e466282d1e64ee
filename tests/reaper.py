# SPDX-License-Identifier: Apache-2.0
"""End what a pytest has started when it ends, however it ends, also by kill -9.

A watcher (base.watcher) waits for its end, then kills each process whose environment holds a mark (its descendants, whatever
session or parent they have by then), and removes the hosts of tests.sshhosts, whose SSH sessions have an environment of their
own.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from multiprocessing import resource_tracker
from pathlib import Path

from base import watcher

NAME = "WARPBED_PYTEST"
PASSES = 100
"""Times that it looks again, 0.05 s apart: a process may start another while it is being killed."""

_watchers: list[subprocess.Popen[bytes]] = []
"""Kept, so that their standard input stays open."""


def tag(pid: int) -> str:
    """What the names of a pytest's network namespaces begin with; a letter follows."""
    return f"wb{pid % 10000}"


def is_tagged(name: str) -> bool:
    """Whether a network namespace or an interface belongs to some pytest's hosts (tests.sshhosts)."""
    return re.fullmatch(r"wb[0-9]+[a-z].*", name) is not None


def start() -> None:
    """Mark what this process starts from now on, and start what waits for this process's end.

    Python's resource tracker, which the first pool of processes starts, ends with this process by itself: it is started before
    the mark, so that it is not taken for something that the test with that pool left running.
    """
    resource_tracker.ensure_running()
    mark = f"{os.getpid()}-{time.monotonic_ns()}"
    unmarked = {key: value for key, value in os.environ.items() if key != NAME}
    _watchers.append(watcher.start(clean_up, str(os.getpid()), mark, environment=unmarked, quiet=True))
    os.environ[NAME] = mark
    atexit.register(_end, os.getpid())


def _end(pid: int) -> None:
    """At an ordinary end wait for the watchers, but not in a child that was forked from the process which started them."""
    if pid == os.getpid():
        for process in _watchers:
            process.communicate()


def marked(mark: str) -> Iterator[int]:
    assignment = f"{NAME}={mark}".encode()
    for entry in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if assignment in entry.read_bytes().split(b"\0"):
                yield int(entry.parent.name)


def left_by(module: str) -> dict[int, str]:
    """Process → its command line, of those that a test of this file started (not its fixtures) and that still are there.

    Known by the variable that pytest sets: one that was started with an environment without it is not found.
    """
    there = {}
    for pid in marked(os.environ[NAME]):
        with contextlib.suppress(OSError):
            folder = Path(f"/proc/{pid}")
            variables = (folder / "environ").read_bytes().decode(errors="replace").split("\0")
            test = next((value for value in variables if value.startswith("PYTEST_CURRENT_TEST=")), "")
            line = (folder / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ").strip()
            is_zombie = not line
            if test.startswith(f"PYTEST_CURRENT_TEST={module}::") and test.endswith("(call)") and not is_zombie:
                there[pid] = f"{line[:200]}, of {test.partition('=')[2]}"
    return there


def kill(pids: list[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def ip(*argv: str) -> list[str]:
    done = subprocess.run(["ip", *argv], capture_output=True, text=True, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
    return done.stdout.splitlines()


def clean_up(pid: str, mark: str) -> None:
    for _ in range(PASSES):
        if not (pids := list(marked(mark))):
            break
        kill(pids)
        time.sleep(0.05)
    with contextlib.suppress(FileNotFoundError):  # no ip: no such hosts
        for name in (line.split()[0] for line in ip("netns", "list")):
            if re.fullmatch(rf"{tag(int(pid))}[a-z]+", name):
                kill([int(inside) for inside in ip("netns", "pids", name)])
                ip("netns", "del", name)
