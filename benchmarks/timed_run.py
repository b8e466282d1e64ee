# SPDX-License-Identifier: Apache-2.0
"""Execute one plan on the virtual host and take its times, for benchmarks of single runs."""

from __future__ import annotations

import contextlib
import resource
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hosts.base import Execution, Outcome
from hosts.virtual.launch import GuestKernel, execute
from plan.model import Plan
from testbed.experiments import prepare


@dataclass(frozen=True)
class TimedRun:
    """A run that has ended; its folders are gone after the `with`.

    up_s: from the start to the network's being up; run_s: from the first sign of the run to its end;
    memory_mib: the most that any child of this process has had
    """

    plan: Plan
    outcome: Outcome
    raw: Path
    up_s: float
    run_s: float
    memory_mib: float


@contextlib.contextmanager
def timed_run(name: str, text: str, kernel: GuestKernel, cpu: int) -> Iterator[TimedRun]:
    """Execute an experiment's first run; raises RuntimeError with the case's name where the guest did not finish it."""
    with tempfile.TemporaryDirectory(prefix="warpbed-timed-") as folder:
        file, raw = Path(folder) / "timed.yml", Path(folder) / "raw"
        file.write_text(text)
        plan = prepare(file).plans[0]
        raw.mkdir()
        marks: list[float] = []
        started = time.monotonic()
        outcome = execute(kernel, Execution(plan, raw, cpu, 1, lambda _: marks.append(time.monotonic()), lambda: False))
        if outcome.error is not None:
            raise RuntimeError(f"{name}: {outcome.error}")
        memory_mib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        run_s = started + outcome.wall_s - (marks[1:] or marks)[0]
        yield TimedRun(plan, outcome, raw, marks[0] - started, run_s, memory_mib)
