# SPDX-License-Identifier: Apache-2.0
"""`./warpbed run`: install, build, execute what is missing, report."""

from __future__ import annotations

import argparse

from testbed import ansible
from testbed.commands.arguments import selection
from testbed.commands.prepared import kind_of, prepared, selected
from testbed.hosts.registry import HOST_KINDS

NAME = "run"
HELP = "install, build, execute what is missing, report"


def arguments(command: argparse.ArgumentParser) -> None:
    selection(command)


def main(options: argparse.Namespace) -> int:
    """Check the file, then hand over to playbooks/run_experiment.yml."""
    asked = prepared(options)
    selected(asked, options)
    kind = kind_of(asked, options)
    variables = {
        "experiment": str(options.experiment.resolve()),
        "experiment_host": kind,
        "experiment_jobs": options.jobs,
        "experiment_only": options.only,
        "experiment_seed": options.seed,
        "experiment_results": str(options.results.resolve()),
    }
    return ansible.play("run_experiment.yml", variables, inventory=HOST_KINDS[kind].inventory)
