# SPDX-License-Identifier: Apache-2.0
"""Clusters of Dask workers: one that runs already, or one that is started for this command and ends with it.

How many cores and how much memory a worker asks for, queues, images and the like stand in Dask's own configuration
(https://docs.dask.org/en/stable/configuration.html), which each of these classes reads by itself.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

from base.errors import UsageError
from base.paths import cache_dir
from testbed.engine import stub
from testbed.session import ignored

LOCAL = "local"
CONNECT_S = 30
"""How long a scheduler may take to answer."""
KEPT_MESSAGES = 2
"""A scheduler keeps the last messages to each worker for its developers, and with them whole runs of 15 kB: Dask's thousand would be 15 GB
for a thousand workers."""


def _jobqueue(name: str) -> Callable[[int], Any]:
    def opened(workers: int) -> Any:
        cluster = getattr(importlib.import_module("dask_jobqueue"), f"{name}Cluster")()

        async def scaled() -> None:
            """`scale` alone tells nobody that the queue has refused a job, and workers would be waited for without end."""
            cluster.scale(jobs=workers or 1)
            await cluster._correct_state()

        logging.getLogger("tornado.application").setLevel(logging.CRITICAL)  # it would tell the same with a traceback
        try:
            cluster.sync(scaled)
        except BaseException:
            for job in list(cluster._created):  # Dask's end of a cluster knows no job that never was one
                job.status = importlib.import_module("distributed.core").Status.closed
            cluster.close()
            raise
        return cluster

    return opened


def _ssh(workers: int) -> Any:
    dask, distributed = (importlib.import_module(name) for name in ("dask", "distributed"))
    hosts = dask.config.get("warpbed.ssh.hosts", None)
    if not hosts or not isinstance(hosts, list):
        raise UsageError(
            "--cluster ssh: Dask's configuration has no warpbed.ssh.hosts; a file ~/.config/dask/warpbed.yaml such as "
            "`warpbed: {ssh: {hosts: [scheduler.example, worker1.example, worker2.example]}}` names the scheduler's host, then the workers'"
        )
    options = {key.replace("-", "_"): value for key, value in dask.config.get("warpbed.ssh.options", {}).items()}
    return distributed.SSHCluster([str(host) for host in hosts], **options)


def _kubernetes(workers: int) -> Any:
    operator: Any = importlib.import_module("dask_kubernetes.operator")
    dask, utils = (importlib.import_module(name) for name in ("dask", "dask.utils"))
    # three resources are waited for with this end, and then, without one, for a scheduler that may have died meanwhile
    most_s = 3 * dask.config.get("kubernetes.resource-timeout")
    most_s += utils.parse_timedelta(dask.config.get("distributed.comm.timeouts.connect"))

    class Cluster(operator.KubeCluster):  # type: ignore[misc]
        def sync(self, work: Any, *arguments: Any, **named: Any) -> Any:
            if work != self._start:
                return super().sync(work, *arguments, **named)
            try:
                return super().sync(work, *arguments, callback_timeout=most_s, **named)
            except TimeoutError as error:
                if str(error) and not str(error).startswith("timed out after"):  # one of the resources
                    raise
                longer = "kubernetes.resource-timeout in Dask's configuration gives it longer"
                raise TimeoutError(f"its scheduler did not answer within {most_s:g} s; {longer}") from error

    given = dask.config.get("kubernetes.env", None) or {}
    bound = {"DASK_DISTRIBUTED__ADMIN__LOW_LEVEL_LOG_LENGTH": str(KEPT_MESSAGES)}
    own = [{"name": name, "value": value} for name, value in bound.items()]
    try:
        return Cluster(
            n_workers=workers or 1, env=[*own, *given] if isinstance(given, list) else {**bound, **given}, quiet=True
        )
    except Exception as error:  # its libraries have errors of their own for what a cluster answers
        begun = Cluster._instances  # what of it is there already would go at this process's end, with a traceback
        for cluster in list(begun):
            with contextlib.suppress(Exception):
                cluster.close(timeout=CONNECT_S)
        begun.clear()
        raise UsageError(
            f"--cluster kubernetes: {type(error).__name__}: {error}; KUBECONFIG names the cluster, which needs Dask's operator "
            "(https://kubernetes.dask.org/en/latest/installing.html)"
        ) from error


def _local(workers: int) -> Any:
    """Processes of this machine, a thread each, that speak TLS with keys of their own: whoever reaches a scheduler executes code."""
    distributed: Any = importlib.import_module("distributed")
    count = workers or len(os.sched_getaffinity(0))
    security = distributed.Security.temporary()
    return distributed.LocalCluster(
        n_workers=count,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        host="127.0.0.1",
        security=security,
        memory_limit=0,
        silence_logs=logging.ERROR,
    )


KINDS: dict[str, Callable[[int], Any]] = {
    LOCAL: _local,
    "slurm": _jobqueue("SLURM"),
    "pbs": _jobqueue("PBS"),
    "sge": _jobqueue("SGE"),
    "lsf": _jobqueue("LSF"),
    "ssh": _ssh,
    "kubernetes": _kubernetes,
}
"""Kind → function of the number of workers (0: one per CPU here, one job elsewhere) that opens a cluster."""


@contextlib.contextmanager
def client_of(scheduler: str, kind: str, workers: int) -> Iterator[Any]:
    """A Dask client of the scheduler at an address, or of a cluster of a kind, which ends with the body.

    Raises UsageError where there is no such package, configuration or scheduler.
    """
    try:
        dask, distributed, cloudpickle = (
            importlib.import_module(name) for name in ("dask", "distributed", "cloudpickle")
        )
    except ImportError as error:
        raise UsageError(
            f"--engine dask: {error}; ./warpbed installs it for this option, python -m testbed does not"
        ) from error
    cloudpickle.register_pickle_by_value(stub)  # workers need not know the project
    # a run takes as long as it takes, and a worker that executes one keeps nothing else in memory
    dask.config.set(
        {
            "distributed.scheduler.allowed-failures": 3,
            "distributed.scheduler.work-stealing": False,
            "distributed.scheduler.worker-saturation": 1.0,
            "distributed.worker.daemon": False,
            "distributed.admin.low-level-log-length": KEPT_MESSAGES,
            "distributed.admin.large-graph-warning-threshold": "1GB",
            # else each scheduler and worker of ours leaves locks in the machine's own folder for temporary files
            "temporary-directory": dask.config.get("temporary-directory", None) or str(cache_dir() / "engine" / "dask"),
        }
    )
    with contextlib.ExitStack() as stack:
        try:
            if scheduler:
                client = stack.enter_context(distributed.Client(scheduler, timeout=CONNECT_S, set_as_default=False))
            else:
                with ignored(signal.SIGINT):  # Ctrl-C is for this process, which ends its workers in order
                    cluster = stack.enter_context(KINDS[kind](workers))
                client = stack.enter_context(distributed.Client(cluster, set_as_default=False))
        except (OSError, ImportError, ValueError, RuntimeError, TimeoutError) as error:
            where = f"--scheduler {scheduler}" if scheduler else f"--cluster {kind}"
            raise UsageError(f"{where}: {type(error).__name__}: {error}") from error
        yield client
