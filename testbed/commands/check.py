# SPDX-License-Identifier: Apache-2.0
"""`./warpbed check`: validate an experiment file and lint its fidelity; runs nothing."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from base.errors import WarpbedError
from base.screen import print_table
from base.text import clean
from kernels import series as kernel_series
from schema.repeats import Repeats
from testbed.commands.arguments import host
from testbed.commands.output import add_format, render
from testbed.commands.prepared import hosts_of, kind_of
from testbed.compile_bpf import not_allowed
from testbed.experiments import Prepared, prepare
from testbed.lint import Finding

HELP = "validate an experiment file and lint its fidelity; runs nothing"


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("experiment", type=Path)
    host(command)
    command.add_argument("--quiet", action="store_true", help="print nothing if the file is valid")
    command.add_argument(
        "--file-only", action="store_true", help="do not look at what the host lacks: it may still be built"
    )
    command.add_argument(
        "--kernel", action="store_true", help="print the kernel series that the experiment needs, one a line"
    )
    add_format(command)


def main(options: argparse.Namespace) -> int:
    """Validate and lint; 1 where a fidelity rule of severity error is broken."""
    prepared = prepare(options.experiment, host=options.host)
    if options.kernel:
        print("\n".join(_series(prepared)))
        return 0
    lacking = [] if options.file_only else _host_findings(prepared, options)
    findings = [*prepared.findings, *lacking]
    ready = not any(finding.severity == "error" for finding in findings)
    if options.format != "table":
        rows = [{"file": str(options.experiment), **asdict(finding)} for finding in findings]
        print_table(render(rows, options.format))
        return 0 if ready else 1
    for finding in findings:
        if not options.quiet or finding.severity == "error":
            print(clean(f"{options.experiment}: {finding.severity}: {finding.rule}: {finding.message}"))
    if not options.quiet:
        swept = {id(run.experiment): run.experiment for run in prepared.runs}  # the seeds of a cell share it
        cells = len({one.model_dump_json() for one in swept.values()})
        repeats = prepared.experiment.repeats
        count = f"{len(prepared.runs)} runs"
        if isinstance(repeats, Repeats):
            count = f"{cells * repeats.least} to {len(prepared.runs)} runs"
        if len(series := _series(prepared)) > 1:
            named = [_built(name) for name in series] if _is_virtual(prepared, options) else series
            print(f"{options.experiment}: kernels {', '.join(named)}")
        print(f"{options.experiment}: {count} ({cells} combinations), {'' if ready else 'not '}ready to run")
    return 0 if ready else 1


def _is_virtual(prepared: Prepared, options: argparse.Namespace) -> bool:
    return kind_of(prepared, options) == "virtual"


def _series(prepared: Prepared) -> list[str]:
    """The kernels of the runs, in their order."""
    return list(dict.fromkeys(kernel_series.of(run.experiment.kernel) for run in prepared.runs))


def _built(series: str) -> str:
    """A kernel's name with whether the virtual host has it."""
    from hosts.virtual.kernel import find  # which not every check needs

    try:
        find(series)
    except WarpbedError:
        return f"{series} (not built yet: ./warpbed run builds it, or ./warpbed build-kernels --series {series})"
    return f"{series} (built)"


def _host_findings(prepared: Prepared, options: argparse.Namespace) -> list[Finding]:
    """What the host lacks for the runs; the virtual host is built for them and lacks nothing."""
    if _is_virtual(prepared, options):
        return []
    hosts = hosts_of(prepared, options)
    pairs = zip(prepared.runs, prepared.plans, strict=True)
    problems = dict.fromkeys(
        text
        for run, plan in pairs
        for text in (*not_allowed(plan.bpf, hosts.kind), *hosts.of(run.experiment).problems(plan))
    )
    return [Finding(f"host-{hosts.kind}", "error", problem) for problem in problems]
