# SPDX-License-Identifier: Apache-2.0
"""What Dask's scheduler and the client cost: many runs that only sleep, on many workers.

    ./warpbed exec python -m benchmarks.engine_overhead --workers 1000 --runs 100000 --sleep-s 60   (WARPBED_EXTRAS=dask)

The scheduler is Dask's own; workers are tasks of this process with a real connection to it, and sleep without a thread each, so that
a thousand of them need no machines. What a worker does for itself (it profiles its thread a hundred times a second and asks its system
for memory and disks) is left out, since it takes its own machine's time and not the scheduler's. Printed: runs a second, the CPU time of
all of it per run, and the largest memory.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import resource
import time
from typing import Any

OF_WORKERS = {
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "600s",
    "distributed.admin.system-monitor.interval": "600s",
    "distributed.admin.system-monitor.disk": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.admin.tick.interval": "10s",
}
"""What workers do on their own machines, in Dask's configuration."""


async def nap(number: int, seconds: float) -> int:
    await asyncio.sleep(seconds)
    return number


async def measure(workers: int, runs: int, sleep_s: float) -> dict[str, float]:
    """Seconds of clock, of CPU, and bytes of memory for `runs` runs; as many under way as testbed.engine.conductor keeps."""
    import dask
    from distributed import Client, Scheduler, Worker

    dask.config.set(OF_WORKERS)
    logging.getLogger("distributed").setLevel(logging.ERROR)
    started: Any = Scheduler
    async with started(protocol="inproc", dashboard_address=None, host="") as scheduler:
        pool = [Worker(scheduler.address, nthreads=1, name=str(n), dashboard_address=None) for n in range(workers)]
        await asyncio.gather(*pool)
        client_of: Any = Client
        async with client_of(scheduler.address, asynchronous=True, set_as_default=False) as client:
            begun, cpu = time.monotonic(), time.process_time()
            loop, ended = asyncio.get_running_loop(), asyncio.Queue[Any]()
            done = sent = 0
            while done < runs:
                while sent < runs and sent - done < workers + workers // 4:
                    future = client.submit(nap, sent, sleep_s, pure=False, priority=-sent, key=f"run-{sent}")
                    future.add_done_callback(lambda one: loop.call_soon_threadsafe(ended.put_nowait, one))
                    sent += 1
                await ended.get()
                done += 1
            clock_s, cpu_s = time.monotonic() - begun, time.process_time() - cpu
        await asyncio.gather(*(worker.close() for worker in pool))
    return {
        "clock_s": clock_s,
        "cpu_s": cpu_s,
        "memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure Dask's scheduler and the client with runs that only sleep.")
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--sleep-s", type=float, default=5.0)
    asked = parser.parse_args()
    found = asyncio.run(measure(asked.workers, asked.runs, asked.sleep_s))
    ideal_s = asked.sleep_s * -(-asked.runs // asked.workers)
    more = 100 * (found["clock_s"] / ideal_s - 1)
    print(
        f"{asked.workers} workers, {asked.runs} runs of {asked.sleep_s:g} s: {found['clock_s']:.1f} s of clock, "
        f"{ideal_s:.1f} s without overhead ({more:.1f} % more); {1e3 * found['cpu_s'] / asked.runs:.2f} ms of CPU a run; "
        f"{found['memory_bytes'] / 1e6:.0f} MB"
    )


if __name__ == "__main__":
    main()
