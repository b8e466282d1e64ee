# SPDX-License-Identifier: Apache-2.0
"""From an experiment file and a command's options to runs, their ids and their results."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.results import load_experiment
from base.errors import UsageError
from base.nearest import nearest
from base.paths import ROOT
from base.text import clean
from hosts.per_kernel import RunHosts, open_hosts
from hosts.registry import HOST_KINDS
from testbed.experiments import Prepared, prepare
from testbed.identity import newest_of, run_id
from testbed.other_runs import note, others
from testbed.repeats import wanted_ids
from testbed.results import Results
from testbed.selection import select

if TYPE_CHECKING:
    from analysis.report import Written


def prepared(options: argparse.Namespace) -> Prepared:
    if options.jobs < 0 or options.seed < 0:
        raise UsageError("--jobs and --seed take numbers from 1 on (0: the default)")
    prepared = prepare(options.experiment, options.seed or None, options.host)
    kind_of(prepared, options)
    if prepared.errors:
        raise UsageError(*(f"{options.experiment}: {f.rule}: {f.message}" for f in prepared.errors))
    return prepared


def selected(prepared: Prepared, options: argparse.Namespace) -> list[object]:
    chosen = select(prepared.runs, options.only)
    if not chosen:
        raise UsageError(f"--only {options.only}: no run is left")
    return list(chosen)


def hosts_of(prepared: Prepared, options: argparse.Namespace) -> RunHosts:
    """The hosts of the kind that `--host` or the file names, ready to execute."""
    kind = HOST_KINDS[kind_of(prepared, options)]
    return open_hosts(kind, prepared.experiment, (run.experiment for run in prepared.runs))


def kind_of(prepared: Prepared, options: argparse.Namespace) -> str:
    kind: str = options.host or prepared.experiment.host
    if kind not in HOST_KINDS:
        raise UsageError(f"host {kind!r} is not built into this version; allowed: {', '.join(HOST_KINDS)}")
    return kind


def run_ids(prepared: Prepared, hosts: RunHosts, results: Results) -> list[str]:
    """Ids of all runs of the file as it is now on a host, in the sweep's order; of repeats without a fixed number, those begun."""
    jobs = zip(prepared.runs, prepared.plans, strict=True)
    ids = [(repr(run.params), run_id(run, plan, hosts.of(run.experiment))) for run, plan in jobs]
    return list(dict.fromkeys(wanted_ids(ids, prepared.experiment.repeats, results)))


def begun_ids(prepared: Prepared, chosen: list[object], hosts: RunHosts, results: Results) -> list[str]:
    """Of the chosen runs, the ids of those that have been done or tried on a host, in the sweep's order."""
    picked = {id(run) for run in chosen}
    jobs = zip(prepared.runs, prepared.plans, strict=True)
    ids = [run_id(run, plan, hosts.of(run.experiment)) for run, plan in jobs if id(run) in picked]
    return [one for one in dict.fromkeys(ids) if results.is_begun(one)]


def answered_ids(prepared: Prepared, kind: str, results: Results) -> list[str]:
    """Folders that answer the runs of the file as it is now, in the sweep's order, whatever kernel made them.

    A run without an answer stands with its label alone; of repeats without a fixed number those stay out.
    """
    there = load_experiment(results.folder) if results.folder.is_dir() else ()
    answers = [(repr(run.params), run, newest_of(run, kind, there)) for run in prepared.runs]
    named = [(cell, run.label() if done is None else done.run) for cell, run, done in answers]
    return list(dict.fromkeys(wanted_ids(named, prepared.experiment.repeats, results)))


def as_written(prepared: Prepared) -> Written:
    """The experiment file as it is now: its claims may be newer than the runs."""
    from analysis.report import Written  # which not every command needs

    path = Path(prepared.document.file)
    file = path.resolve().relative_to(ROOT) if path.resolve().is_relative_to(ROOT) else path
    return Written(str(file), prepared.experiment.model_dump(mode="json", by_alias=True, exclude_none=True))


def results_of(options: argparse.Namespace) -> tuple[Path, list[str] | None]:
    """Folder of an experiment's results, and the ids that count: those of the file as it is now where a file is
    given, all that are there where a name is given (None). Needs no kernel: which one made a run, the run says."""
    path = Path(options.experiment)
    if path.suffix in (".yml", ".yaml"):
        prepared = prepare(path, host=options.host)
        results = Results(options.results, prepared.experiment.name)
        kind = kind_of(prepared, options)
        folder, names = results.folder, answered_ids(prepared, kind, results)
        there = load_experiment(folder) if folder.is_dir() else ()
        if not {run.run for run in there if run.complete} & set(names) and (left := others(prepared.runs, kind, there)):
            print(clean(note(folder.name, len(left))), file=sys.stderr)
    else:
        folder, names = options.results / options.experiment, None
    if not folder.is_dir():
        known = [entry.name for entry in options.results.glob("*") if entry.is_dir() and not entry.name.startswith(".")]
        raise UsageError(f"{folder}: no results; {nearest(folder.name, known)}; ./warpbed run makes them")
    return folder, names
