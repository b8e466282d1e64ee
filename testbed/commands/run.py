# SPDX-License-Identifier: Apache-2.0
"""`./warpbed run`: install and build prerequisites, execute missing runs, write the report."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from analysis.results import load_experiment
from base.screen import print_table
from hosts.registry import HOST_KINDS
from testbed import ansible
from testbed.commands.execute import arguments, executed
from testbed.commands.output import of_runs
from testbed.commands.prepared import begun_ids, hosts_of, kind_of, prepared, selected
from testbed.engine import options as engine
from testbed.ready import ready_hosts
from testbed.results import Results

__all__ = ["HELP", "arguments", "main"]
HELP = "install and build prerequisites, execute missing runs, write the report"


def main(options: argparse.Namespace) -> int:
    """Check the file, then hand over to playbooks/run_experiment.yml, or execute here where it would change nothing else."""
    engine.check(options)
    asked = prepared(options)
    selected(asked, options)
    kind = kind_of(asked, options)
    if (hosts := ready_hosts(HOST_KINDS[kind], asked)) is not None:
        return executed(options, asked, hosts)
    variables = {
        "experiment": str(options.experiment.resolve()),
        "experiment_host": kind,
        "experiment_jobs": options.jobs,
        "experiment_only": options.only,
        "experiment_seed": options.seed,
        "experiment_results": str(options.results.resolve()),
        "experiment_engine": engine.words(options),
    }
    output = None if options.format == "table" else sys.stderr
    code = ansible.play("run_experiment.yml", variables, inventory=HOST_KINDS[kind].inventory, output=output)
    if output is not None and code != 2:
        results = Results(options.results.resolve(), asked.experiment.name)
        names = begun_ids(asked, selected(asked, options), hosts_of(asked, options), results)
        print_table(of_runs(load_experiment(results.folder, names), options.format))
    return code


def of_file(file: Path, options: argparse.Namespace, **others: Any) -> int:
    """The command for a file that another command has chosen, with its `--jobs`, `--results` and engine; returns the exit code.

    others: options of this command that are not as they are by default
    """
    engines = {name: getattr(options, name, default) for name, default in engine.DEFAULTS.items()}
    given = {"host": None, "only": "", "seed": 0, "results": options.results, "format": "table", **engines, **others}
    return main(argparse.Namespace(experiment=file, jobs=options.jobs, **given))
