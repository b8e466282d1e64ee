# SPDX-License-Identifier: Apache-2.0
"""Execute the runs of an experiment that are missing: side by side, each pinned to a CPU, each resumable."""

from __future__ import annotations

import json
import os
import queue
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from base.errors import WarpbedError
from base.watcher import watching
from hosts.base import Execution, failure
from hosts.per_kernel import RunHosts
from plan.model import Plan
from testbed import free_cpu, janitor
from testbed.collecting import collect_apart, finishing
from testbed.forks import Forks
from testbed.results import Results, purge_aside
from testbed.run_json import run_json
from testbed.runs import PlannedRun

Report = Callable[[dict[str, Any]], None]


@dataclass
class Job:
    """One run that is to be done. `progress_s` is its virtual time while it runs."""

    run: PlannedRun
    plan: Plan
    run_id: str
    progress_s: float = 0.0


@dataclass
class Summary:
    done: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    present: int = 0
    cancelled: bool = False

    def add(self, other: Summary) -> None:
        """Take in what became of further jobs."""
        self.done += other.done
        self.failed |= other.failed
        self.present += other.present
        self.cancelled |= other.cancelled


def cpus(jobs: int | None) -> list[int]:
    """CPUs to pin guests to, one per job; all that this process may use where jobs is None."""
    allowed = sorted(os.sched_getaffinity(0))
    count = len(allowed) if jobs is None else jobs
    return [allowed[i % len(allowed)] for i in range(count)]


class Runs(Protocol):
    """What makes runs: this process (`Runner`), or workers elsewhere (testbed.engine)."""

    def cancel(self) -> None:
        """End soon, and leave what is done; from any thread or signal handler."""

    def run_all(self, jobs: list[Job]) -> Summary:
        """Make every run that is missing; a failed one does not keep the others from being made."""


def missing(results: Results, jobs: Sequence[Job], summary: Summary, report: Report) -> list[Job]:
    """The jobs that are to be done; the others are counted.

    Where something is in the way that is no complete run, it is renamed, and that is told before the run is made. Where it cannot be
    told what it is, the run has failed already.
    """
    left = []
    for job in jobs:
        if results.is_complete(job.run_id):
            summary.present += 1
            continue
        try:
            kept = results.set_aside(job.run_id)
        except (WarpbedError, OSError) as error:
            summary.failed[job.run_id] = str(error)
            report({"event": "failed", "run": job.run_id, "of_s": job.plan.duration_s, "message": str(error)})
            continue
        if kept is not None:
            message = f"what lay in its place is no complete run (no readable run.json) and is kept as {kept}"
            report({"event": "kept", "run": job.run_id, "message": message})
        left.append(job)
    return left


class Runner:
    """Runs jobs on the hosts of an experiment. `cancel()` may be called from any thread or signal handler."""

    def __init__(self, results: Results, hosts: RunHosts, jobs: int | None, report: Report) -> None:
        self._results, self._hosts, self._report = results, hosts, report
        self._cpus = cpus(1 if hosts.one_at_a_time else jobs)
        self._cancelled = threading.Event()
        self._lock = threading.Lock()

    def cancel(self) -> None:
        self._cancelled.set()

    def run_all(self, jobs: list[Job]) -> Summary:
        """Do every job; a failed one does not keep the others from being done."""
        summary, todo = Summary(), queue.SimpleQueue[Job]()
        purge_aside(self._results.base)
        for job in missing(self._results, jobs, summary, self._report):
            todo.put(job)
        if todo.empty():
            return summary
        self._results.base.mkdir(parents=True, exist_ok=True)
        with finishing() as forks, watching(janitor.clean_up, str(self._results.base.absolute()), told=True):
            workers = [threading.Thread(target=self._work, args=(cpu, todo, summary, forks)) for cpu in self._cpus]
            for worker in workers:
                worker.start()
            for worker in workers:
                while worker.is_alive():  # an uninterrupted join would hold signals back
                    worker.join(0.2)
        summary.cancelled = self._cancelled.is_set()
        return summary

    def _work(self, cpu: int, todo: queue.SimpleQueue[Job], summary: Summary, forks: Forks) -> None:
        while not self._cancelled.is_set():
            try:
                job = todo.get_nowait()
            except queue.Empty:
                return
            try:
                with free_cpu.taken(cpu) as own:
                    self._one(job, own, summary, forks)
            except Exception as error:  # noqa: BLE001 — whatever it is, it belongs to this run and not to the others
                self._failed(summary, job, f"{type(error).__name__}: {error}")

    def _one(self, job: Job, cpu: int, summary: Summary, forks: Forks) -> None:
        self._report({"event": "started", "run": job.run_id})

        def progress(virtual_s: float) -> None:
            job.progress_s = virtual_s
            self._report({"event": "progress", "run": job.run_id, "virtual_s": virtual_s, "of_s": job.plan.duration_s})

        with self._results.aside() as folder:
            _check_path(folder)
            raw = folder / "raw"
            raw.mkdir()
            host = self._hosts.of(job.run.experiment)
            outcome = host.execute(Execution(job.plan, raw, cpu, job.run.seed, progress, self._cancelled.is_set))
            if self._cancelled.is_set():
                return
            document = run_json(job.run, job.run_id, job.plan, host, outcome, self._results.folder.name)
            error = outcome.error
            if error is None:
                _write(folder / "run.json", document)
                trouble = collect_apart(folder, forks, cpu)
                error = None if trouble is None else failure("collect", folder.name, trouble.detail)
            if error is not None:
                document.update(status="failed", error=error)
                _write(folder / "run.json", document)
                kept = self._results.publish_failed(folder, job.run_id)
                self._failed(
                    summary, job, f"{error['stage']} {error['subject']}: {error['detail']} (see {kept / 'raw'})"
                )
                return
            self._results.publish(folder, job.run_id)
        with self._lock:
            summary.done.append(job.run_id)
        self._report(
            {
                "event": "done",
                "run": job.run_id,
                "of_s": job.plan.duration_s,
                "wall_s": round(outcome.wall_s, 2),
                "speed": round(job.plan.duration_s / outcome.wall_s, 2),
            }
        )

    def _failed(self, summary: Summary, job: Job, message: str) -> None:
        with self._lock:
            summary.failed[job.run_id] = message
        self._report({"event": "failed", "run": job.run_id, "of_s": job.plan.duration_s, "message": message})


def _check_path(folder: Path) -> None:
    if not str(folder).isprintable() or '"' in str(folder):
        raise WarpbedError(f"{folder}: the guest's command line cannot hold quotes; use --results with another folder")


def _write(file: Path, document: dict[str, Any]) -> None:
    file.write_text(json.dumps(document, indent=1) + "\n")
