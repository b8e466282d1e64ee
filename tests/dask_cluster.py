# SPDX-License-Identifier: Apache-2.0
"""A scheduler of Dask and two workers in one process, to be killed at once: importing Dask takes each process a second.

python -m tests.dask_cluster PORT FILE      PORT: 0 for any; FILE gets the scheduler's address once it listens
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any


async def serve(port: int, file: Path) -> None:
    import dask
    from distributed import Scheduler, Worker

    dask.config.set({"temporary-directory": str(file.parent)})
    scheduler: Any = await Scheduler(host="127.0.0.1", port=port, dashboard=False)
    workers = [await Worker(scheduler.address, nthreads=1, dashboard=False) for _ in range(2)]
    fresh = file.with_suffix(".new")
    fresh.write_text(scheduler.address)
    fresh.rename(file)
    await asyncio.gather(scheduler.finished(), *(worker.finished() for worker in workers))


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), Path(sys.argv[2])))
