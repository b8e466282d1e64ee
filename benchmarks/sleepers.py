# SPDX-License-Identifier: Apache-2.0
"""Workers for benchmarks.engine_overhead that only sleep: to Dask's scheduler they are what its own workers are.

Each has the two connections of a worker: a stream, on which it registers, gets tasks and tells their ends, and one on which it sends its
heartbeats at the interval that the scheduler gives. The messages are those of Dask's worker protocol; what a heartbeat says has the
length that a worker's has. A task is not unpacked: its key says which run it is, and so how long it sleeps.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import pickle
from collections.abc import Callable, Mapping
from typing import Any

BETWEEN_REGISTRATIONS = 50
"""So many workers come at a time."""
KEEP_ALIVE_S = 60.0
KIND = pickle.dumps(dict)


class Sleeper:
    """One worker. lengths_s: how long each run sleeps, by its id"""

    def __init__(self, number: int, address: str, versions: Mapping[str, Any], lengths_s: Mapping[str, float]) -> None:
        self.name = str(number)
        self.address = f"tcp://127.0.0.1:{10000 + number}"  # nobody connects to it: answers come with events
        self._scheduler, self._versions, self._lengths_s = address, versions, lengths_s
        self._connect: Callable[..., Any] = importlib.import_module("distributed.comm").connect
        self._executing: dict[str, float] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def begin(self) -> None:
        """Register; what follows goes on by itself until the scheduler closes the connection."""
        self._now: Callable[[], float] = importlib.import_module("distributed.metrics").time
        # run specifications stay the bytes that they are
        self._stream: Any = await self._connect(self._scheduler, deserialize=False)
        await self._stream.write(
            {
                "op": "register-worker",
                "reply": False,
                "address": self.address,
                "status": "running",
                "nthreads": 1,
                "name": self.name,
                "now": self._now(),
                "resources": {},
                "memory_limit": 8 << 30,
                "local_directory": "/tmp/sleeper",
                "services": {},
                "nanny": None,
                "pid": os.getpid(),
                "versions": self._versions,
                "metrics": self._metrics(),
                "extra": {},
                "stimulus_id": f"worker-connect-{self._now()}",
                "server_id": f"Worker-{self.name}",
            },
            serializers=["msgpack"],
        )
        answer = await self._stream.read()
        if answer["status"] != "OK":
            raise RuntimeError(f"the scheduler does not take worker {self.name}: {answer}")
        self._goes_on(self._read())
        self._goes_on(self._beat(float(answer["heartbeat-interval"])))
        self._goes_on(self._keep_alive())

    def _goes_on(self, work: Any) -> None:
        task = asyncio.ensure_future(self._until_closed(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @staticmethod
    async def _until_closed(work: Any) -> None:
        with contextlib.suppress(OSError):  # the scheduler has ended
            await work

    async def _read(self) -> None:
        while True:
            for message in await self._stream.read():
                if message["op"] == "compute-task":
                    self._goes_on(self._sleep(message))
                elif message["op"] == "close":
                    return
                # others ask for data to go, and there is none

    async def _sleep(self, message: Mapping[str, Any]) -> None:
        key = str(message["key"])
        _, session, _, run = key.split("-", 3)  # warpbed-SESSION-NUMBER-RUN, as testbed.engine.conductor writes it
        begun = self._executing[key] = self._now()
        await asyncio.sleep(self._lengths_s[run])
        ended = self._now()
        del self._executing[key]
        answer = {
            "run": run,
            "status": "done",
            "message": "",
            "worker": self.name,
            "address": self.address,
            "wall_s": ended - begun,
            "entry": None,
        }
        told = {"event": "answer", "task": key, "answer": answer}
        finished = {
            "op": "task-finished",
            "status": "OK",
            "key": key,
            "run_id": message["run_id"],
            "nbytes": 400,
            "type": KIND,
            "typename": "dict",
            "metadata": {},
            "thread": 1,
            "stimulus_id": f"task-finished-{ended}",
            "startstops": ({"action": "compute", "start": begun, "stop": ended},),
        }
        await self._stream.write([{"op": "log-event", "topic": f"warpbed-{session}", "msg": told}, finished])

    async def _beat(self, interval_s: float) -> None:
        comm: Any = await self._connect(self._scheduler)
        while True:
            await asyncio.sleep(interval_s)
            now = self._now()
            await comm.write(
                {
                    "op": "heartbeat_worker",
                    "reply": True,
                    "address": self.address,
                    "now": now,
                    "metrics": self._metrics(),
                    "executing": {key: now - begun for key, begun in self._executing.items()},
                    "extensions": {},
                }
            )
            interval_s = float((await comm.read())["heartbeat-interval"])

    async def _keep_alive(self) -> None:
        while True:
            await asyncio.sleep(KEEP_ALIVE_S)
            await self._stream.write([{"op": "keep-alive"}])

    def _metrics(self) -> dict[str, Any]:
        """As long as Dask's: its numbers decide nothing here."""
        return {
            "task_counts": {"executing": len(self._executing)},
            "bandwidth": {"total": 100000000, "workers": {}, "types": {}},
            "digests_total_since_heartbeat": {"latency": 0.001, "tick-duration": 0.5},
            "managed_bytes": 0,
            "spilled_bytes": {"memory": 0, "disk": 0},
            "transfer": {
                "incoming_bytes": 0,
                "incoming_count": 0,
                "incoming_count_total": 0,
                "outgoing_bytes": 0,
                "outgoing_count": 0,
                "outgoing_count_total": 0,
            },
            "event_loop_interval": 0.02,
            "cpu": 2.0,
            "memory": 100 << 20,
            "time": self._now(),
            "host_net_io": {"read_bps": 0.0, "write_bps": 0.0},
            "num_fds": 30,
        }


_there: list[Sleeper] = []
"""For as long as the process lives: event loops hold what waits in them by weak references."""


async def pool(address: str, count: int, lengths_s: Mapping[str, float]) -> None:
    """That many workers, on this loop."""
    versions = importlib.import_module("distributed.versions").get_versions()
    made = [Sleeper(number, address, versions, lengths_s) for number in range(count)]
    _there.extend(made)
    for start in range(0, count, BETWEEN_REGISTRATIONS):
        await asyncio.gather(*(one.begin() for one in made[start : start + BETWEEN_REGISTRATIONS]))
