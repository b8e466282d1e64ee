# SPDX-License-Identifier: Apache-2.0
"""One test at a time with what a machine has only once: its kernel's algorithms, and the local host's runs.

Tests of other files, workers and checkouts run at the same moment. The kernel takes a name only once, and the local host refuses a
second run, so that neither would say anything about the product.
"""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path

LOCK = Path("/run/warpbed-tests-alone")
"""Where only root writes: nobody else can have the kernel's algorithms or the local host."""


@contextlib.contextmanager
def with_this_machine(lock: Path = LOCK) -> Iterator[None]:
    """Wait until no other test has this machine, and have it until the body's end, or this process's."""
    with lock.open("ab") as held:  # which no program that is started inherits
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
