# SPDX-License-Identifier: Apache-2.0
"""`./warpbed calibrate`: measure an experiment's links as a host builds them, against the file."""

from __future__ import annotations

import argparse
import dataclasses
import os
from pathlib import Path

from analysis.calibration import NOT, OFF, OK, Row, as_text, judge
from base.errors import UsageError, WarpbedError
from base.screen import print_table
from base.text import clean
from base.watcher import watched_folder
from hosts.base import Execution, Host
from plan.model import Plan
from schema.model import Experiment
from testbed.commands.arguments import host as host_argument
from testbed.commands.output import add_format, render
from testbed.commands.prepared import hosts_of
from testbed.experiments import Prepared, prepare
from testbed.selection import select

ALGORITHM_SYSCTL = "net.ipv4.tcp_congestion_control"
HELP = "measure delay, rate, buffer and loss of each link as built, against the file"


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("experiment", type=Path, help="experiment file")
    host_argument(command)
    command.add_argument("--only", default="", metavar="EXPR", help="only these runs' networks, e.g. buffer=50p")
    add_format(command)


def main(options: argparse.Namespace) -> int:
    """Each different network of the experiment once; 1 where a quantity is off."""
    prepared = prepare(options.experiment, host=options.host)
    if prepared.errors:
        raise UsageError(*(f"{options.experiment}: {f.rule}: {f.message}" for f in prepared.errors))
    hosts = hosts_of(prepared, options)
    measured: list[dict[str, object]] = []
    code = 0
    for label, (run, plan) in networks(prepared, options.only).items():
        host = hosts.of(run)
        if problems := host.problems(plan):
            raise UsageError(*(f"{options.experiment}: host {host.kind}: {problem}" for problem in problems))
        rows = judge(plan, measure(host, plan))
        code = 1 if any(row.verdict == OFF for row in rows) else code
        measured += [{"network": label, "host": host.kind, **dataclasses.asdict(row)} for row in rows]
        if options.format == "table":
            print(clean(f"{label} on host {host.kind}"))
            print_table(render([as_text(row) for row in rows], "table"))
            print(_summary(rows))
    if options.format != "table":
        print_table(render(measured, options.format))
    return code


def _summary(rows: list[Row]) -> str:
    return ", ".join(f"{sum(row.verdict == verdict for row in rows)} {verdict}" for verdict in (OK, OFF, NOT))


def networks(prepared: Prepared, only: str) -> dict[str, tuple[Experiment, Plan]]:
    """One run and its plan per different network and kernel, by topology, parameters, and the kernel where there are several."""
    chosen = {id(run) for run in select(prepared.runs, only)}
    if not chosen:
        raise UsageError(f"--only {only}: no run is left")
    by_name: dict[str, tuple[Experiment, Plan]] = {}
    seen = []
    several = len({run.experiment.kernel for run in prepared.runs}) > 1
    for run, plan in zip(prepared.runs, prepared.plans, strict=True):
        kernel = run.experiment.kernel
        if id(run) in chosen and (kernel, plan.network) not in seen:
            seen.append((kernel, plan.network))
            topology = run.experiment.topology
            parameters = ", ".join(f"{name}={value}" for name, value in topology.params.items())
            label = f"{topology.name} ({parameters})" if parameters else topology.name
            label += f", kernel {kernel}" if several else ""
            by_name[label] = (run.experiment, calibration_plan(plan))
    return by_name


def calibration_plan(plan: Plan) -> Plan:
    """The plan's network with nothing on it: no traffic, no algorithms, so no sysctl that names one."""
    hosts = {
        name: dataclasses.replace(
            settings, sysctls={k: v for k, v in settings.sysctls.items() if k != ALGORITHM_SYSCTL}
        )
        for name, settings in plan.hosts.items()
    }
    return dataclasses.replace(
        plan,
        hosts=hosts,
        flows=(),
        traffic=(),
        captures=(),
        tcp_probe=False,
        sockets_interval_s=None,
        queues_interval_s=None,
        cca_params={},
        calibration="only",
        modules=tuple(m for m in plan.modules if not _is_algorithm(m.path)),
    )


def _is_algorithm(path: str) -> bool:
    return path.rpartition("/")[2].startswith("tcp_")


def measure(host: Host, plan: Plan) -> dict[str, object]:
    """Build the network on the host and measure it; "calibration" of its guest.json.

    Raises WarpbedError where the host does not get that far.
    """
    with watched_folder("warpbed-calibrate-") as folder:
        cpu = min(os.sched_getaffinity(0))
        outcome = host.execute(Execution(plan, folder, cpu, 1, lambda _: None, lambda: False))
    if outcome.error is not None:
        error = outcome.error
        raise WarpbedError(f"{error['stage']} {error['subject']}: {error['detail']}")
    facts: dict[str, object] = outcome.facts["calibration"]
    return facts
