# SPDX-License-Identifier: Apache-2.0
"""What the engine costs with many workers: runs that only sleep, by the real scheduler, client and conductor.

    WARPBED_EXTRAS=dask ./warpbed exec python -m benchmarks.engine_overhead --workers 1000 --runs 100000 --sleep-s 60

One process holds Dask's scheduler, testbed.engine's DaskRunner, and the workers, each with its two connections and its heartbeats over TCP;
their tasks sleep without a thread, so that a thousand of them need no machines. Its clock is the process's CPU time, and leaps where all of
it waits: an hour of sleep takes none, the result does not hang on what else the machine does, and what the workers spend on their
connections counts as if the scheduler's one CPU did it.

--workers-are dask: Dask's own workers. What a worker does for itself (it profiles its thread and asks its system for memory and disks) is
left out, since it takes its own machine's time. --workers-are sleepers (default): benchmarks/sleepers.py, which say to the scheduler what
Dask's workers say, and keep nothing: most of the others' memory and half of their CPU time is not the scheduler's.

What a run is expected to take is drawn evenly between (1 - spread) and (1 + spread) times the mean, and what it takes between (1 - error)
and (1 + error) times that: the quickstart's twelve runs, which should all take equally long, differ so.

Printed now and then and at the end: that clock, beside the one of a list schedule of the same runs, longest first, that costs nothing;
CPU time a run; the process's memory at that moment.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import heapq
import logging
import queue
import random
import resource
import selectors
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from base.paths import ROOT
from benchmarks import sleepers
from hosts.per_kernel import RunHosts
from testbed.engine import conductor, stub
from testbed.engine.conductor import DaskRunner
from testbed.engine.order import longest_first
from testbed.engine.supplies import Supplies
from testbed.experiments import prepare
from testbed.results import Results
from testbed.runner import Job

OF_WORKERS = {
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "600s",
    "distributed.admin.system-monitor.interval": "600s",
    "distributed.admin.system-monitor.disk": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.admin.tick.interval": "60s",
    "distributed.admin.tick.limit": "100000s",
}
"""What workers do on their own machines, in Dask's configuration."""
WORKERS = ("sleepers", "dask")
SLEEPING = "sleeping"
"""A kind of cluster of this benchmark."""
TOLD_RUNS = 2000
FILES = 65536
"""Open files of a process that a thousand connections need."""


async def nap(program: bytes, packed: bytes) -> dict[str, Any]:
    """Takes the place of stub.called; stub.run_task travels with it as it does with a run."""
    import asyncio
    import pickle

    from distributed import get_worker

    order = pickle.loads(packed)  # noqa: S301 (this process has made it)
    await asyncio.sleep(order["sleep_s"])
    worker: Any = get_worker()
    said: dict[str, Any] = {
        "run": order["run"], "status": "done", "message": "", "worker": str(worker.name), "address": worker.address,
        "wall_s": order["sleep_s"], "entry": None,
    }  # fmt: skip
    worker.log_event(order["topic"], {"event": "answer", "task": order["task"], "answer": said})
    return said


@dataclass(frozen=True)
class NoHost:
    kind: str = "virtual"
    one_at_a_time: bool = False

    @property
    def facts(self) -> dict[str, str]:
        return {"key": "0"}


class Ordered(Results):
    """Results whose runs are complete once they were ordered: a sleeping run leaves nothing."""

    def __init__(self, base: Path, experiment: str) -> None:
        super().__init__(base, experiment)
        self.ordered: set[str] = set()

    def is_complete(self, run_id: str) -> bool:
        return run_id in self.ordered


class Sleeping(DaskRunner):
    """The runner as it is, but for how long a run sleeps."""

    error = 0.0

    def order(self, job: Job, token: str) -> dict[str, Any]:
        results = self._results
        assert isinstance(results, Ordered)
        results.ordered.add(job.run_id)
        return {**super().order(job, token), "sleep_s": length_s(job, self.error)}


def length_s(job: Job, error: float) -> float:
    """How long a run sleeps."""
    return job.plan.duration_s * (1 + error * random.Random(job.run_id).uniform(-1, 1))  # noqa: S311


def least_s(lengths_s: Sequence[float], workers: int) -> float:
    """Clock of a list schedule that costs nothing: whoever is free takes the next."""
    free = [0.0] * workers
    for length_s in lengths_s:
        heapq.heappush(free, heapq.heappop(free) + length_s)
    return max(free)


def sleeping_jobs(runs: int, sleep_s: float, spread: float) -> list[Job]:
    """Runs of the quickstart's first combination that differ in their length only."""
    first = prepare(ROOT / "experiments/quickstart.yml")
    run, plan = first.runs[0], first.plans[0]
    draw = random.Random(1)  # noqa: S311
    lengths = [sleep_s * (1 + spread * draw.uniform(-1, 1)) for _ in range(runs)]
    return [Job(replace(run, seed=n), replace(plan, duration_s=length), f"r{n}") for n, length in enumerate(lengths)]


class Clock:
    """CPU time of this process, and what was leapt over."""

    leapt_s = 0.0

    @classmethod
    def now(cls) -> float:
        return time.process_time() + cls.leapt_s


class Handed:
    """The conductor's queue, which knows whether the conductor waits at it."""

    waiting: threading.Event = threading.Event()

    def __init__(self) -> None:
        self._items: queue.SimpleQueue[Any] = queue.SimpleQueue()
        Handed.empty = self._items.empty  # type: ignore[attr-defined]

    def put(self, item: Any) -> None:
        self._items.put(item)

    def get(self, timeout: float) -> Any:
        Handed.waiting.set()
        try:
            return self._items.get(timeout=10 * timeout)
        finally:
            Handed.waiting.clear()

    def get_nowait(self) -> Any:
        return self._items.get_nowait()


class Leaping(selectors.EpollSelector):
    """Waits for nothing but the conductor: where a loop would sleep until its next timer, the clock leaps there."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        for _ in range(3):  # others may be about to have something: their turn
            if (ready := super().select(0)) or (timeout is not None and timeout <= 0):
                return ready
            time.sleep(0)
        if timeout is None or not Handed.waiting.is_set() or not Handed.empty():  # type: ignore[attr-defined]
            return super().select(0.001)
        Clock.leapt_s += timeout
        return []


class Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        super().__init__(Leaping())

    def time(self) -> float:
        return Clock.now()


class Loops(asyncio.DefaultEventLoopPolicy):
    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        return Loop()


async def pool(address: str, count: int) -> None:
    """That many of Dask's workers, on this loop."""
    from distributed import Worker

    made = [Worker(address, nthreads=1, name=str(n), dashboard_address=None) for n in range(count)]
    for start in range(0, count, 50):
        await asyncio.gather(*made[start : start + 50])


def scheduler_alone(workers: int) -> Any:
    """A cluster of this process's scheduler, to which workers come by themselves."""
    import distributed

    made: Any = distributed.LocalCluster
    return made(n_workers=0, host="127.0.0.1", dashboard_address=None, silence_logs=logging.ERROR)


def many_files() -> None:
    """Allow a connection for each worker."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    most = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def memory_mb() -> float:
    """What this process has of the machine's memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def measure(workers: int, jobs: list[Job], error: float, folder: Path, kind: str, kept: int | None) -> None:
    """Make the runs, and print what they cost. kind: of WORKERS; kept: messages to each worker, None: as the engine has it"""
    import dask

    from testbed.engine import clusters

    dask.config.set(OF_WORKERS)
    clusters.KEPT_MESSAGES = clusters.KEPT_MESSAGES if kept is None else kept
    asyncio.set_event_loop_policy(Loops())
    setattr(conductor, "queue", type("queue", (), {"SimpleQueue": Handed, "Empty": queue.Empty}))  # noqa: B010
    stub.called = nap  # type: ignore[assignment]
    Supplies.artifacts = lambda self, kernel: ()  # type: ignore[method-assign]
    host: Any = NoHost()
    clusters.KINDS[SLEEPING] = scheduler_alone
    lengths_s = {job.run_id: length_s(job, error) for job in longest_first(jobs)}
    ideal_s = least_s(list(lengths_s.values()), workers)
    with clusters.client_of("", SLEEPING, 0) as client:
        if kind == "dask":
            client.sync(pool, client.scheduler.address, workers)
        else:
            client.sync(sleepers.pool, client.scheduler.address, workers, lengths_s)
        gc.freeze()
        print(f"{workers} workers are there; {memory_mb():.0f} MB", flush=True)
        done = 0
        begun, cpu = Clock.now(), time.process_time()

        def told(last: str = "") -> None:
            print(
                f"{done} of {len(jobs)} runs, {Clock.now() - begun:.1f} s{last}; "
                f"{1e3 * (time.process_time() - cpu) / done:.2f} ms of CPU a run; {memory_mb():.0f} MB",
                flush=True,
            )

        def count(event: dict[str, Any]) -> None:
            nonlocal done
            done += event["event"] == "done"
            if done % TOLD_RUNS == 0:
                told()

        runner = Sleeping(Ordered(folder, SLEEPING), RunHosts(host), client, count)
        runner.error = error
        summary = runner.run_all(jobs)
        clock_s = Clock.now() - begun
        assert len(summary.done) == len(set(summary.done)) == len(jobs) and not summary.failed
        told(f", {ideal_s:.1f} s without overhead ({100 * (clock_s / ideal_s - 1):.1f} % more)")
        Handed.waiting.set()  # nobody takes anything any more


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure scheduler and client with runs that only sleep.")
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--sleep-s", type=float, default=5.0, help="mean length of a run")
    parser.add_argument(
        "--spread", type=float, default=0.5, help="expected lengths are drawn within this share of the mean"
    )
    parser.add_argument(
        "--error", type=float, default=0.2, help="lengths are drawn within this share of what is expected"
    )
    parser.add_argument("--workers-are", choices=WORKERS, default="sleepers")
    parser.add_argument(
        "--kept", type=int, metavar="N", help="messages to each worker that the scheduler keeps (Dask by itself: 1000)"
    )
    asked = parser.parse_args()
    many_files()
    with tempfile.TemporaryDirectory(prefix="warpbed-engine-") as folder:
        jobs = sleeping_jobs(asked.runs, asked.sleep_s, asked.spread)
        measure(asked.workers, jobs, asked.error, Path(folder), asked.workers_are, asked.kept)


if __name__ == "__main__":
    main()
