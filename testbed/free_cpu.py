# SPDX-License-Identifier: Apache-2.0
"""A CPU for a run that no other command's run has: two commands with one job each do not share one while another is idle.

A run that has a CPU holds a lock on a file of the cache, which goes with the process. Where none is free, or the cache cannot be
written, a run gets the CPU that it would have had without the others; nothing waits.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from base.paths import cache_dir


def folder() -> Path:
    return cache_dir() / "cpus"


@contextlib.contextmanager
def taken(preferred: int) -> Iterator[int]:
    """A CPU that this process may use, the preferred one if it is free or if none is."""
    others = sorted(os.sched_getaffinity(0) - {preferred})
    with contextlib.ExitStack() as stack:
        for cpu in (preferred, *others):
            try:
                lock = os.open(_made(cpu), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            except OSError:
                break
            stack.callback(os.close, lock)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue
            yield cpu
            return
        yield preferred


def _made(cpu: int) -> Path:
    folder().mkdir(parents=True, exist_ok=True)
    return folder() / str(cpu)
