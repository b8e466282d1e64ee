# SPDX-License-Identifier: Apache-2.0
"""`./warpbed list`: list what there is."""

from __future__ import annotations

import argparse

from analysis import metrics as metric_registry
from testbed.cache import ROOT
from testbed.commands.prepared import HOSTS
from testbed.spec.load import load
from testbed.spec.names import algorithms, project_ccas
from topologies import registry

NAME = "list"
HELP = "list what there is"


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("what", choices=["experiments", "algorithms", "topologies", "hosts", "metrics"])


def main(options: argparse.Namespace) -> int:
    """Print what there is, a line each."""
    if options.what == "experiments":
        for path in sorted((ROOT / "experiments").rglob("*.yml")):
            print(f"{path.relative_to(ROOT)}: {load(path)[0].title}")
    elif options.what == "algorithms":
        own = project_ccas()
        for name in algorithms():
            print(f"{name}: {'module ' + str(own[name].relative_to(ROOT)) if name in own else 'the kernel’s own'}")
    elif options.what == "topologies":
        for name in registry.names():
            words = (registry.load(name).__doc__ or "").strip().splitlines()[0]
            print(f"{name}: {words} Parameters: {', '.join(registry.parameter_names(name))}")
    elif options.what == "metrics":
        for name, metric in sorted(metric_registry.REGISTRY.items()):
            print(f"{name} [{metric.unit or '1'}]: {metric.description}")
    else:
        for name, words in HOSTS.items():
            print(f"{name}: {words}")
    return 0
