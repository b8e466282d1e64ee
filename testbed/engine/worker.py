# SPDX-License-Identifier: Apache-2.0
"""The process that makes one run on a worker: python -P -m testbed.engine.worker PARENT CPU.

Standard input: eight bytes of length, an Order by pickle, and then nothing until its end, which is the sign to stop. Standard
output: events, a JSON object a line; the last is the result. The order comes from the client by way of Dask, whose workers
execute whatever a client sends.
"""

from __future__ import annotations

import errno
import json
import os
import pickle
import sys
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from base import cache
from base.errors import WarpbedError
from base.linux import die_with_parent
from base.paths import cache_dir
from base.watcher import remove_folder, watching
from hosts.per_kernel import RunHosts
from hosts.virtual import pinned
from hosts.virtual.host import VirtualHost
from hosts.virtual.kernel import load
from testbed.engine.store import Entry, Store
from testbed.results import Results
from testbed.runner import Job, Runner
from testbed.runs import FileInputs, PlannedRun

FULL = (errno.ENOSPC, errno.EDQUOT)
"""A disk without room is the worker's lack, not the run's failure: other runs would fail there as well, one after the other."""


@dataclass(frozen=True)
class ShippedRun(PlannedRun):
    """A run away from its experiment file: what stands beside the file was looked up by the client."""

    given: FileInputs | None = None

    def inputs(self, host: str) -> FileInputs:
        assert self.given is not None
        return self.given


@dataclass(frozen=True)
class Artifact:
    """A folder of the cache that runs need: its place below the cache, the file that says that it is whole, and its archive."""

    place: str
    marker: str
    entry: Entry | None = None


@dataclass(frozen=True)
class Order:
    """One run for a worker. results: the shared folder, or "" where the store `store` takes what comes out."""

    job: Job
    experiment: str
    kernel: str
    artifacts: tuple[Artifact, ...]
    results: str = ""
    store: str = ""


def main() -> int:
    die_with_parent(int(sys.argv[1]) if os.getppid() == int(sys.argv[1]) else None)
    os.sched_setaffinity(0, {int(sys.argv[2])})
    length = int.from_bytes(sys.stdin.buffer.read(8), "big")
    order: Order = pickle.loads(sys.stdin.buffer.read(length))  # noqa: S301 (from this user's client, see above)
    try:
        status, message, entry = made(order)
    except WarpbedError as error:
        status, message, entry = "lacking", str(error), None
    except OSError as error:
        status = "lacking" if error.errno in FULL else "failed"
        message, entry = f"{error.filename or 'a file'}: {error.strerror or error}", None
    answer = (
        None
        if entry is None
        else {"name": entry.name, "bytes": entry.bytes, "sha256": entry.sha256, "says": entry.says}
    )
    say({"event": "result", "status": status, "message": message, "entry": answer})
    return 0


def say(event: dict[str, Any]) -> None:
    print(json.dumps(event), flush=True)


def made(order: Order) -> tuple[str, str, Entry | None]:
    """Make the run: status, message, and the entry of the store that holds its folder."""
    fetch(order)
    pinned.root()
    host = VirtualHost(load(cache_dir() / "kernels" / order.kernel))
    if order.results:
        return _outcome(order, Results(Path(order.results), order.experiment), host)
    scratch = cache_dir() / "engine" / "runs"
    scratch.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=scratch))
    with watching(remove_folder, str(folder), quiet=True):
        results = Results(folder, order.experiment)
        status, message, _ = _outcome(order, results, host)
        if status in ("stopped", "lacking"):
            return status, message, None
        run_folder = (
            results.path(order.job.run_id) if status == "done" else results.folder / f"{order.job.run_id}.failed-1"
        )
        if not run_folder.is_dir():
            return status, message, None
        says = {"status": status, "run": order.job.run_id, "message": message}
        return status, message, Store(order.store).put(run_folder, f"runs/{order.experiment}/{order.job.run_id}", says)


def _outcome(order: Order, results: Results, host: VirtualHost) -> tuple[str, str, Entry | None]:
    runner = Runner(results, RunHosts(host), 1, say)
    threading.Thread(target=_stop_at_end, args=(runner,), daemon=True).start()
    summary = runner.run_all([order.job])
    if summary.cancelled:
        return "stopped", "", None
    if words := summary.failed.get(order.job.run_id):
        is_full = any(os.strerror(number) in words for number in FULL)
        return "lacking" if is_full else "failed", words, None
    return "done", "", None


def _stop_at_end(runner: Runner) -> None:
    while os.read(0, 4096):
        pass
    runner.cancel()


def fetch(order: Order) -> None:
    """Get what is not in this worker's cache, by its key. Raises WarpbedError for what cannot be had."""
    for artifact in order.artifacts:
        final = cache_dir() / artifact.place
        if (final / artifact.marker).exists():
            continue
        if artifact.entry is None:
            raise WarpbedError(
                f"{final}: {artifact.marker} is missing, and this worker does not build it; "
                "share the cache (WARPBED_CACHE), or give --store URL"
            )
        with cache.aside(final, marker=artifact.marker) as work:
            if work is not None:
                Store(order.store).get(artifact.entry, work[0], trusted=True)


if __name__ == "__main__":
    sys.exit(main())
