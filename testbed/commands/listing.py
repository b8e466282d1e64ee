# SPDX-License-Identifier: Apache-2.0
"""`./warpbed list`: list what there is."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import topologies
from analysis import metrics as metric_registry
from base.paths import ROOT
from base.screen import print_table
from base.text import clean
from hosts.registry import HOST_KINDS
from schema.load import load
from schema.names import algorithms, project_ccas
from testbed.commands.output import add_format, render

HELP = "list experiments, algorithms, topologies, hosts or metrics"


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("what", choices=list(KINDS))
    add_format(command)


def main(options: argparse.Namespace) -> int:
    """Print what there is, a line each."""
    rows = list(KINDS[options.what]())
    if options.format == "table":
        for row in rows:
            head, *rest = (str(value) for value in row.values())
            print(clean(f"{head}: {' '.join(rest)}"))
    else:
        print_table(render(rows, options.format))
    return 0


def _experiments() -> Iterator[dict[str, str]]:
    for path in sorted((ROOT / "experiments").rglob("*.yml")):
        yield {"experiment": str(path.relative_to(ROOT)), "title": load(path)[0].title}


def _algorithms() -> Iterator[dict[str, str]]:
    own = project_ccas()
    for name in algorithms():
        place = f"module {own[name].relative_to(ROOT)}" if name in own else "the kernel’s own"
        yield {"algorithm": name, "place": place}


def _topologies() -> Iterator[dict[str, str]]:
    for name in topologies.names():
        first_line = (topologies.load(name).__doc__ or "").strip().splitlines()[0]
        parameters = f"Parameters: {', '.join(topologies.parameter_names(name))}"
        yield {"topology": name, "description": first_line, "parameters": parameters}


def _hosts() -> Iterator[dict[str, str]]:
    for name, kind in HOST_KINDS.items():
        yield {"host": name, "description": kind.text}


def _metrics() -> Iterator[dict[str, str]]:
    for name, metric in sorted(metric_registry.REGISTRY.items()):
        needs = "; ".join(map(str, metric.needs)) or "nothing more than the run"
        yield {"metric": f"{name} [{metric.unit or '1'}]", "definition": metric.description, "needs": f"Needs {needs}."}


KINDS: dict[str, Callable[[], Iterator[dict[str, str]]]] = {
    "experiments": _experiments,
    "algorithms": _algorithms,
    "topologies": _topologies,
    "hosts": _hosts,
    "metrics": _metrics,
}
