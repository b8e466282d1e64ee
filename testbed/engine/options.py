# SPDX-License-Identifier: Apache-2.0
"""`--engine` and what belongs to it, and the runner that was asked for."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from base.errors import UsageError
from hosts.per_kernel import RunHosts
from testbed.results import Results
from testbed.runner import Report, Runner, Runs

ENGINES = ("local", "dask")
DEFAULTS: Mapping[str, Any] = {
    "engine": "local",
    "scheduler": "",
    "cluster": "",
    "workers": 0,
    "store": "",
    "retries": 1,
}
"""The options in a namespace, as they are where none is given."""
CLUSTERS = ("local", "slurm", "pbs", "sge", "lsf", "ssh", "kubernetes")


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("--engine", choices=ENGINES, default="local", help="what starts runs (default: this process)")
    command.add_argument(
        "--scheduler", default="", metavar="ADDRESS", help="dask: a scheduler that is there, e.g. tcp://host:8786"
    )
    command.add_argument(
        "--cluster",
        choices=CLUSTERS,
        default="",
        help="dask: a cluster to start (default: local, processes of this machine)",
    )
    command.add_argument("--workers", type=int, default=0, metavar="N", help="dask: workers of the cluster to start")
    command.add_argument(
        "--store",
        default="",
        metavar="URL",
        help="dask: where workers without the client's file system get builds and leave results",
    )
    command.add_argument(
        "--retries", type=int, default=1, metavar="N", help="dask: further attempts at a failed run (default: 1)"
    )


def check(options: argparse.Namespace) -> None:
    """Raise UsageError for options that contradict one another."""
    given = [f"--{name}" for name in ("scheduler", "cluster", "workers", "store") if getattr(options, name)]
    if options.engine == "local" and given:
        raise UsageError(f"{', '.join(given)}: only with --engine dask")
    if options.scheduler and (options.cluster or options.workers):
        raise UsageError("--scheduler is a cluster that is there: without --cluster and --workers")
    if options.workers < 0 or options.retries < 0:
        raise UsageError("--workers and --retries take numbers from 0 on")


def words(options: argparse.Namespace) -> list[str]:
    """The same options as a command line has them; empty for the local engine."""
    if options.engine == "local":
        return []
    named = [(name, getattr(options, name)) for name in DEFAULTS]
    return [f"--{name}={value}" for name, value in named if value != ""]


@contextlib.contextmanager
def runner_of(options: argparse.Namespace, results: Results, hosts: RunHosts, report: Report) -> Iterator[Runs]:
    """The runner of the engine that was asked for; what it has started ends with the body."""
    if options.engine == "local":
        yield Runner(results, hosts, options.jobs or None, report)
        return
    check(options)
    from testbed.engine.clusters import LOCAL, client_of  # the local engine needs nothing of these
    from testbed.engine.conductor import DaskRunner

    with client_of(options.scheduler, options.cluster or LOCAL, options.workers or options.jobs) as client:
        yield DaskRunner(results, hosts, client, report, store=options.store, retries=options.retries)
