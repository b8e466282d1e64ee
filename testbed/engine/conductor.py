# SPDX-License-Identifier: Apache-2.0
"""The client's side: which runs are under way on which worker, which are tried again, what came home.

Whether a run is done is decided by its folder in the results alone, as with the local engine. So a client that was killed, a
scheduler that was started again and a worker that finishes late change nothing but time: what is there is not made again, and
the second of two equal runs finds the first one's name taken.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import importlib
import pickle
import queue  # benchmarks.engine_overhead puts its own in its place
import secrets
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from base.errors import UsageError, WarpbedError
from base.watcher import watching
from hosts.per_kernel import RunHosts
from testbed import janitor
from testbed.engine import stub
from testbed.engine.order import longest_first, needed_bytes
from testbed.engine.supplies import Supplies
from testbed.engine.worker import Order, ShippedRun
from testbed.results import Results, purge_aside
from testbed.runner import Job, Report, Summary, missing

TICK_S = 0.2
STATUS_S = 2.0
"""How often the futures' and the scheduler's states are looked at."""
PATIENCE_S = 600.0
"""How long a scheduler may be away."""
AHEAD = 2
"""One run waits at the scheduler for so many threads, so that none of a thousand workers that end at once need wait for the client."""
MOST_LACKING = 3
"""So many workers that cannot make any run are not bad luck."""


class DaskRunner:
    """Makes runs by a Dask client; takes the place of testbed.runner.Runner. `cancel()` may be called from any thread or signal handler."""

    def __init__(
        self, results: Results, hosts: RunHosts, client: Any, report: Report, *, store: str = "", retries: int = 1
    ) -> None:
        """store: an address of fsspec for workers that do not see the results' folder; retries: further attempts at a failed run."""
        if hosts.kind != "virtual":
            raise UsageError(
                f"--engine dask: host {hosts.kind} runs on this machine's own network; only the virtual host has runs that may be anywhere"
            )
        self._results, self._hosts, self._client, self._report = results, hosts, client, report
        self._store, self._retries = store, retries
        self._cancelled = threading.Event()
        self._session = secrets.token_hex(8)
        self._supplies = Supplies(store)
        self.answers: dict[str, Mapping[str, Any]] = {}
        """By the task's key, of tasks whose end was not told yet."""

    def cancel(self) -> None:
        self._cancelled.set()

    def run_all(self, jobs: list[Job]) -> Summary:
        """Make every run that is missing; a failed one does not keep the others from being made."""
        summary = Summary()
        purge_aside(self._results.base)
        left = missing(self._results, jobs, summary, self._report)
        if self._store and left:
            there = len(left)
            left = [job for job in left if not self._came_home(job)]
            summary.present += there - len(left)
        if not left:
            return summary
        self._results.base.mkdir(parents=True, exist_ok=True)
        with (
            watching(janitor.clean_up, str(self._results.base.absolute()), told=True),
            self._token() as token,
            self._events(),
        ):
            _Round(self, left, summary, token).conduct()
        summary.cancelled = self._cancelled.is_set()
        return summary

    def _came_home(self, job: Job) -> bool:
        """Whether a run that an earlier client did not live to fetch lies in the store; then it is fetched."""
        for entry in self._supplies.store.entries(f"runs/{self._results.folder.name}/{job.run_id}"):
            if entry.says.get("status") == "done" and self._supplies.fetch(entry, self._results, job.run_id):
                return True
        return False

    @contextlib.contextmanager
    def _token(self) -> Iterator[str]:
        """A file by which workers see that their folder of results is this one."""
        if self._store:
            yield ""
            return
        file = self._results.base / f".engine-{self._session}"
        with watching(_remove, str(file), quiet=True):
            file.touch()
            try:
                yield self._session
            finally:
                file.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _events(self) -> Iterator[None]:
        """Hand the workers' events on to the progress, and keep what tasks answer: a worker's answer comes before the word that its task
        has ended, and so need not be asked for."""

        def take(event: tuple[float, Mapping[str, Any]]) -> None:
            with contextlib.suppress(KeyError, TypeError):
                if event[1]["event"] == stub.ANSWER:
                    self.answers[event[1]["task"]] = event[1]["answer"]
                else:
                    self._report(dict(event[1]))

        topic = f"warpbed-{self._session}"
        self._client.subscribe_topic(topic, take)
        try:
            yield
        finally:
            with contextlib.suppress(Exception):  # the scheduler may be gone; what was said was said
                self._client.unsubscribe_topic(topic)
            self.answers.clear()

    def order(self, job: Job, token: str) -> dict[str, Any]:
        """What the stub is given for a run."""
        run = job.run
        kernel = Path(str(self._hosts.of(run.experiment).facts["key"])).name
        shipped = ShippedRun(run.experiment, run.params, run.seed, run.document, run.inputs(self._hosts.kind))
        shared = "" if self._store else str(self._results.base.absolute())
        payload = Order(
            Job(shipped, job.plan, job.run_id),
            self._results.folder.name,
            kernel,
            self._supplies.artifacts(kernel),
            shared,
            self._store,
        )
        return {
            "run": job.run_id,
            "session": self._session,
            "payload": pickle.dumps(payload),
            "results": shared,
            "token": token,
            "topic": f"warpbed-{self._session}",
            "memory_bytes": needed_bytes(job),
            **self._supplies.program(),
        }


class Travelling:
    """A function by value: Dask's tasks name functions that the client can import, which scheduler and workers need not have."""

    def __init__(self, packed: bytes) -> None:
        self._bytes = packed

    def __reduce__(self) -> tuple[Callable[[bytes], Any], tuple[bytes]]:
        return pickle.loads, (self._bytes,)

    def __dask_tokenize__(self) -> bytes:
        return self._bytes

    def __call__(self, program: bytes, order: bytes) -> Any:
        return pickle.loads(self._bytes)(program, order)  # noqa: S301 (this client's own)


class _Round:
    """The runs of one call of `run_all`."""

    def __init__(self, runner: DaskRunner, jobs: list[Job], summary: Summary, token: str) -> None:
        self._runner, self._summary, self._token = runner, summary, token
        self._client = runner._client
        self._task = importlib.import_module("dask._task_spec").Task
        self._packed: Callable[[object], bytes] = importlib.import_module("cloudpickle").dumps
        self._called, self._program = Travelling(self._packed(stub.called)), self._packed(stub.run_task)
        self._todo = deque(longest_first(jobs))
        self._under: dict[Any, Job] = {}
        self._ended: queue.SimpleQueue[tuple[Any, Mapping[str, Any] | None]] = queue.SimpleQueue()
        self._attempts: dict[str, int] = {}
        self._avoid: dict[str, set[str]] = {}
        self._lacking: dict[str, str] = {}
        self._threads: Mapping[str, int] = {}
        self._looked = self._seen = time.monotonic()
        self._number = 0
        self._told_to_wait = False

    def conduct(self) -> None:
        try:
            while (self._todo or self._under) and not self._runner._cancelled.is_set():
                self._look()
                self._submit()
                with contextlib.suppress(queue.Empty):
                    ended = self._ended.get(timeout=TICK_S)
                    while True:
                        self._take(*ended)
                        ended = self._ended.get_nowait()
        finally:
            self._stop()

    def _look(self) -> None:
        """The scheduler and its workers, now and then; what it has forgotten is to be made again."""
        now = time.monotonic()
        if self._threads and now - self._looked < STATUS_S:
            return
        self._looked = now
        if self._client.status == "running":
            with contextlib.suppress(OSError, TimeoutError, RuntimeError):
                self._threads = self._client.nthreads()
                self._seen = now
        if self._client.status == "closed" or now - self._seen > PATIENCE_S:
            raise WarpbedError(
                f"the scheduler is gone ({self._client.status}); {len(self._summary.done)} runs were made; the same command resumes"
            )
        if not self._threads and not self._told_to_wait:
            self._told_to_wait = True
            print("waiting for workers", file=sys.stderr, flush=True)
        for future in [one for one in self._under if one.status in ("cancelled", "lost")]:
            self._todo.appendleft(self._under.pop(future))

    def _submit(self) -> None:
        """Keep every thread busy and a few runs waiting, and no more: the scheduler's memory does not grow with the number of runs."""
        if self._client.status != "running":
            return
        threads = sum(self._threads.values())
        some: list[Job] = []
        while self._todo and len(self._under) + len(some) < threads + threads // AHEAD:
            job = self._todo.popleft()
            avoid = self._avoid.get(job.run_id, set()) | self._lacking.keys()
            if good := [address for address in self._threads if address not in avoid] if avoid else []:
                self._ask_for([job], good)
            else:
                some.append(job)
        if some:
            self._ask_for(some)

    def _ask_for(self, jobs: list[Job], workers: list[str] | None = None) -> None:
        """Give runs to the scheduler as one graph, which costs it less than one for each. workers: by which they should be made."""
        tasks = {}
        for job in jobs:
            self._number += 1
            key = f"warpbed-{self._runner._session}-{self._number}-{job.run_id}"
            order = {**self._runner.order(job, self._token), "task": key}
            # a producer of data waits at the scheduler, where any other task would go to a worker that is busy
            tasks[key] = self._task(key, self._called, self._program, self._packed(order), _data_producer=True)
        futures = self._client.get(
            tasks,
            list(tasks),
            sync=False,
            retries=0,
            workers=workers,
            allow_other_workers=bool(workers),
            priority=-self._number,
        )
        for future, job in zip(futures, jobs, strict=True):
            self._under[future] = job
            future.add_done_callback(self._ask)

    def _ask(self, future: Any) -> None:
        """The answer of a task that has ended; where it has not come by itself, the worker is asked for it."""
        if future.status != "finished" or future.key in self._runner.answers:
            self._ended.put((future, self._runner.answers.pop(future.key, None)))
            return
        with contextlib.suppress(RuntimeError):  # the client has ended meanwhile, and nobody waits for the answer
            asked = self._client.gather([future], errors="skip", asynchronous=True)
            answered = asyncio.run_coroutine_threadsafe(asked, self._client.loop.asyncio_loop)
            answered.add_done_callback(lambda one: self._ended.put((future, _answer(one))))

    def _take(self, future: Any, answer: Mapping[str, Any] | None) -> None:
        """A task has ended, in whatever way. answer: what it has returned, if it came."""
        job = self._under.pop(future, None)
        if job is None:
            return
        if answer is not None:
            self._judge(job, answer)
        elif future.status == "error":
            error = future.exception()
            # what Dask itself gives up: the workers that had this run died, one after the other
            self._failed(job, f"{type(error).__name__}: {error}", "")
        else:
            self._todo.appendleft(job)

    def _judge(self, job: Job, answer: Mapping[str, Any]) -> None:
        results, entry = self._runner._results, answer["entry"]
        if answer["status"] == "lacking":
            self._lacking[answer["address"]] = f"{answer['message']} (worker {answer['worker']})"
            if len(self._lacking) >= min(MOST_LACKING, max(1, len(self._threads))):
                raise WarpbedError(
                    f"--engine dask: {next(iter(self._lacking.values()))}; "
                    f"{len(self._lacking)} of {len(self._threads)} workers cannot make runs"
                )
            self._todo.appendleft(job)
        elif answer["status"] == "stopped":
            self._todo.appendleft(job)
        elif answer["status"] == "failed":
            if entry is not None:
                self._runner._supplies.fetch_failed(entry, results, job.run_id)
            self._failed(job, answer["message"], answer["address"], answer["worker"])
        elif (
            entry is not None and not self._runner._supplies.fetch(entry, results, job.run_id)
        ) or not results.is_complete(job.run_id):
            self._failed(
                job, "was reported done, but its folder did not come home whole", answer["address"], answer["worker"]
            )
        else:
            self._summary.done.append(job.run_id)
            wall_s = max(answer["wall_s"], 1e-3)
            self._report(job, event="done", wall_s=round(wall_s, 2), speed=round(job.plan.duration_s / wall_s, 2))

    def _failed(self, job: Job, message: str, address: str, worker: str = "") -> None:
        """Try it again elsewhere, or tell that it has failed, and where."""
        attempts = self._attempts[job.run_id] = self._attempts.get(job.run_id, 0) + 1
        if address:
            self._avoid.setdefault(job.run_id, set()).add(address)
        if attempts <= self._runner._retries:
            self._todo.append(job)
            return
        where = f"worker {worker}, " if worker else ""
        reason = f"{message} ({where}attempt {attempts})"
        self._summary.failed[job.run_id] = reason
        self._report(job, event="failed", message=reason)

    def _report(self, job: Job, **event: Any) -> None:
        self._runner._report({"run": job.run_id, "of_s": job.plan.duration_s, **event})

    def _stop(self) -> None:
        """End what is still under way."""
        if not self._under:
            return
        with contextlib.suppress(Exception):  # who cannot be asked ends with the scheduler, or when it is lost
            self._client.cancel(list(self._under), force=True)
            self._client.run(stub.stop_session, self._runner._session, on_error="ignore")
        self._under.clear()


def _answer(gathered: concurrent.futures.Future[list[Mapping[str, Any]]]) -> Mapping[str, Any] | None:
    """The answer of the one task that was asked for; None where its worker has gone with it, so that its run is asked for again."""
    try:
        return next(iter(gathered.result()), None)
    except (OSError, TimeoutError, RuntimeError, concurrent.futures.CancelledError):
        return None


def _remove(file: str) -> None:
    Path(file).unlink(missing_ok=True)
