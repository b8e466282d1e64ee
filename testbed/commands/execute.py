# SPDX-License-Identifier: Apache-2.0
"""`./warpbed execute`: execute missing runs and write the report, without installing or building."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from analysis.arrays import without_pandas
from analysis.precision import standings
from analysis.report import write_report
from analysis.results import Run, load_experiment
from base.errors import UsageError, WarpbedError
from base.screen import print_table
from base.text import clean
from hosts.per_kernel import RunHosts
from schema.repeats import Repeats
from testbed.commands.arguments import selection
from testbed.commands.output import add_format, of_runs, spoken_aside
from testbed.commands.prepared import as_written, hosts_of, prepared, run_ids, selected
from testbed.compile_bpf import not_allowed
from testbed.engine import options as engine
from testbed.experiments import Prepared
from testbed.identity import run_id
from testbed.outcomes import outcomes, print_outcomes
from testbed.progress import Progress
from testbed.repeats import rounds
from testbed.results import Results
from testbed.runner import Job, Summary
from testbed.session import stop_on_signals, terminal

HELP = "execute missing runs and write the report, without installing or building"


def arguments(command: argparse.ArgumentParser) -> None:
    selection(command)
    engine.arguments(command)
    add_format(command)


def main(options: argparse.Namespace) -> int:
    """Execute what is missing in this process; a pipe as standard input is the sign to stop when it ends."""
    engine.check(options)
    asked = prepared(options)
    return executed(options, asked, hosts_of(asked, options))


def executed(options: argparse.Namespace, asked: Prepared, hosts: RunHosts) -> int:
    """Execute what is missing on these hosts, and answer in the format asked for; returns the exit code."""
    with spoken_aside(options.format):
        code, runs = _execute(options, asked, hosts)
    if options.format != "table":
        print_table(of_runs(runs, options.format))
    return code


def _execute(options: argparse.Namespace, asked: Prepared, hosts: RunHosts) -> tuple[int, Sequence[Run]]:
    """The exit code, and the runs that were asked for."""
    results = Results(options.results.resolve(), asked.experiment.name)
    pairs = zip(asked.runs, asked.plans, strict=True)
    jobs = [Job(run, plan, run_id(run, plan, hosts.of(run.experiment))) for run, plan in pairs]
    chosen = {id(run) for run in selected(asked, options)}
    jobs = list({job.run_id: job for job in jobs if id(job.run) in chosen}.values())
    missing = [job for job in jobs if not results.is_complete(job.run_id)]
    obstacles = (
        problem
        for job in missing
        for problem in (*not_allowed(job.plan.bpf, hosts.kind), *hosts.of(job.run.experiment).problems(job.plan))
    )
    if problems := list(dict.fromkeys(obstacles)):
        raise UsageError(*(f"{options.experiment}: host {hosts.kind}: {problem}" for problem in problems))
    progress = Progress(0, 0.0, sys.stdout, terminal())
    summary, begun = Summary(), list[str]()
    with contextlib.ExitStack() as stack:
        stack.callback(progress.close)
        runner = stack.enter_context(engine.runner_of(options, results, hosts, progress.event))
        stop_on_signals(runner)
        for some in rounds(jobs, asked.experiment.repeats, results, asked.experiment.claims):
            begun += [job.run_id for job in some]
            progress.expect([job.plan.duration_s for job in some if not results.is_complete(job.run_id)])
            summary.add(runner.run_all(some))
            if summary.cancelled:
                break
    if summary.cancelled:
        raise WarpbedError(
            f"interrupted; {len(summary.done) + summary.present} of {len(begun)} runs are complete; run the same command again to resume"
        )
    if not summary.done and not summary.failed:
        print(f"nothing to do: all {len(begun)} runs are there")
    runs = load_experiment(results.folder, begun)
    unasked = [run.params for run in asked.runs if id(run) not in chosen]
    code = _conclude(results.folder, runs, asked, run_ids(asked, hosts, results), unasked)
    return code or (1 if summary.failed else 0), runs


def _conclude(
    folder: Path, runs: Sequence[Run], asked: Prepared, all_names: list[str], unasked: Sequence[Mapping[str, Any]]
) -> int:
    """Print the table, what became of guards and claims, and the report's path; 1 where a guard or a claim fails."""
    without_pandas()
    print_table(of_runs(runs, "table"))
    judged = outcomes(runs, asked, folder, unasked)
    print_outcomes(judged)
    if isinstance(asked.experiment.repeats, Repeats):
        for standing in standings(asked.experiment.repeats, runs):
            print(clean(standing.words()))
    print(f"report: {write_report(folder, names=all_names, asked=as_written(asked))}")
    return 1 if judged.guards_failed or judged.claims_failed else 0
