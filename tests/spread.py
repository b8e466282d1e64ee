# SPDX-License-Identifier: Apache-2.0
"""On which CPU a worker of the tests runs its next file: the one that the others leave most of.

Each keeps to one CPU, as guests do, and guests take the first that they may: so those of several workers are spread over all.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
from collections.abc import Sequence
from pathlib import Path


def choose(cpus: Sequence[int], others: Sequence[tuple[int, float]]) -> int:
    """The CPU with the least to do; others: CPU and busy share of each other worker."""
    return min(cpus, key=lambda cpu: (math.fsum(busy for taken, busy in others if taken == cpu), cpu))


def settle(shared: Path, worker: str, busy: float, cpus: Sequence[int]) -> int:
    """Move this process, and what it starts from now on, to the CPU that suits; returns it.

    shared: a file of all workers; busy: the CPU time that the next file is expected to take in a second.
    """
    with open(shared, "a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        taken: dict[str, tuple[int, float]] = json.loads(file.read() or "{}")
        taken.pop(worker, None)
        cpu = choose(cpus, list(taken.values()))
        taken[worker] = (cpu, busy)
        file.seek(0)
        file.truncate()
        file.write(json.dumps(taken))
    os.sched_setaffinity(0, {cpu})
    return cpu
