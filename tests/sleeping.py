# SPDX-License-Identifier: Apache-2.0
"""Runs that only sleep, in place of what testbed.engine's tasks execute: how they are spread is the same, and takes no guests."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from testbed.experiments import prepare
from testbed.results import Results
from testbed.runner import Job
from tests import lab

RUNS = 12


@dataclass(frozen=True)
class FakeHost:
    """A host that is never asked to execute anything."""

    kind: str = "virtual"
    facts: Any = None
    one_at_a_time: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "facts", {"key": "0123"})


def published(order: dict[str, Any]) -> None:
    """A finished run's folder, as the process of a run leaves it."""
    base = Path(order["results"])
    results = Results(base, "small")
    with results.aside() as folder:
        (folder / "run.json").write_text("{}")
        results.publish(folder, order["run"])


def answer(order: dict[str, Any], status: str, message: str = "") -> dict[str, Any]:
    from distributed import get_worker

    worker: Any = get_worker()
    return {
        "run": order["run"],
        "status": status,
        "message": message,
        "worker": str(worker.name),
        "address": worker.address,
        "wall_s": 0.01,
        "entry": None,
    }


def sleeps(order: dict[str, Any]) -> dict[str, Any]:
    time.sleep(0.02)
    with open(Path(order["results"]) / "begun.txt", "a") as log:
        log.write(order["run"] + "\n")
    published(order)
    return answer(order, "done")


def sleeps_long(order: dict[str, Any]) -> dict[str, Any]:
    """As long as it takes somebody to kill its worker."""
    time.sleep(0.7)
    return sleeps(order)


def jobs(folder: Path, runs: int = RUNS) -> list[Job]:
    """Runs of one, two, three … seconds of virtual time, the shortest first."""
    prepared = prepare(lab.write(folder, lab.SMALL + f"repeats: {runs}\n"))
    pairs = zip(prepared.runs, prepared.plans, strict=True)
    return [Job(run, replace(plan, duration_s=1.0 + n), f"s{run.seed}") for n, (run, plan) in enumerate(pairs)]


def begun(folder: Path) -> list[str]:
    """The runs that have begun, in order; a run that began twice is there twice."""
    file = folder / "results/begun.txt"
    return file.read_text().split() if file.exists() else []
