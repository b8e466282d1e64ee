# SPDX-License-Identifier: Apache-2.0
"""`./warpbed status`: which runs of an experiment are there, and which of their inputs have changed since."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from analysis.results import Run as Done
from analysis.results import load_experiment
from base.errors import WarpbedError
from base.screen import print_table
from base.text import clean
from hosts.per_kernel import RunHosts
from testbed.commands.arguments import host as host_argument
from testbed.commands.arguments import results
from testbed.commands.output import add_format, render
from testbed.commands.prepared import hosts_of, kind_of
from testbed.experiments import Prepared, prepare
from testbed.identity import changed, newest_of, run_id
from testbed.other_runs import differences, note, others
from testbed.results import Results

OTHER = "not in the file"
"""The state of a run that was made from another form of the file."""
HELP = "which runs of an experiment are there, and which of their inputs have changed since"


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("experiment", type=Path, help="experiment file")
    add_format(command)
    host_argument(command)
    results(command)


def main(options: argparse.Namespace) -> int:
    """Print a line per run of the file; 0 whatever is missing."""
    prepared = prepare(options.experiment, host=options.host)
    kind = kind_of(prepared, options)
    now, why_not = _hosts(prepared, options)
    folder = Results(options.results, prepared.experiment.name).folder
    there = load_experiment(folder) if folder.is_dir() else ()
    rows: list[dict[str, Any]] = []
    for run, plan in zip(prepared.runs, prepared.plans, strict=True):
        host = None if now is None else now.of(run.experiment)
        done = _by_id(there, run_id(run, plan, host)) if host is not None else None
        done = done or newest_of(run, kind, there)
        since = [] if done is None else changed(done, run, plan, host)
        rows.append(
            {
                "run": run.label() if done is None else done.run,
                "state": "missing" if done is None else done.status,
                "verdict": "" if done is None else done.verdict,
                "changed since": ", ".join(since),
            }
        )
    left = others(prepared.runs, kind, there)
    rows += [
        {"run": done.run, "state": OTHER, "verdict": done.verdict,
         "changed since": "; ".join(differences(done, prepared.runs))}
        for done in left
    ]  # fmt: skip
    print_table(render(rows, options.format))
    if options.format == "table":
        if why_not:
            print(clean(f"kernels and modules were not compared: {why_not}"))
        complete = sum(row["state"] == "complete" and not row["changed since"] for row in rows)
        print(f"{complete} of {len(prepared.runs)} runs exist and were made from the current sources")
        if left:
            print(clean(note(folder.name, len(left))))
    return 0


def _hosts(prepared: Prepared, options: argparse.Namespace) -> tuple[RunHosts | None, str]:
    """The hosts as they are now, or why it cannot be asked; results can be read without it."""
    try:
        return hosts_of(prepared, options), ""
    except WarpbedError as error:
        return None, str(error)


def _by_id(there: tuple[Done, ...], name: str) -> Done | None:
    return next((done for done in there if done.run == name), None)
