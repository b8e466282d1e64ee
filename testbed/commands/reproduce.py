# SPDX-License-Identifier: Apache-2.0
"""`./warpbed reproduce`: run what the theses' entries still need, decide them, and make their pages."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from analysis.report import write_report
from analysis.reproduction import recorded
from analysis.reproduction.outcomes import Judged
from analysis.reproduction.pages import write_pages
from base import quantities
from base.errors import UsageError
from base.paths import ROOT
from base.screen import print_table
from base.text import json_text
from testbed import junit
from testbed.commands import run as run_command
from testbed.commands.arguments import results
from testbed.commands.output import add_format, render, spoken_aside
from testbed.commands.prepared import answered_ids, as_written
from testbed.engine import options as engine
from testbed.reproduction import costs
from testbed.reproduction.bindings import BEYOND, Bindings, Bound, chosen, read
from testbed.reproduction.costs import duration
from testbed.reproduction.deciding import Decider, counts
from testbed.results import Results, purge_aside

HELP = "run what a thesis' results still need, decide them, and print what agrees and what contradicts"


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "what", nargs="*", metavar="THESIS|ENTRY", help="e.g. ho2008, ho2008-fig5.3 or fig5.3 (default: all)"
    )
    command.add_argument(
        "--list", action="store_true", help="what decides each entry and what is missing; runs nothing"
    )
    command.add_argument(
        "--no-run", action="store_true", help="decide from the runs that are there, and the recorded ones"
    )
    command.add_argument(
        "--beyond",
        action="store_true",
        help="run what lies beyond the published points instead: drawn paths, and other choices for what a thesis leaves open",
    )
    command.add_argument("--jobs", type=int, default=0, metavar="N", help="runs in parallel (default: one per CPU)")
    command.add_argument(
        "--within", default="", metavar="TIME", help="begin only experiments that end within it, e.g. 2h"
    )
    command.add_argument(
        "--record",
        type=Path,
        metavar="DIR",
        default=ROOT / "docs/reproduction",
        help="runs behind earlier pages, which stand for those that are not in the results (default: docs/reproduction)",
    )
    command.add_argument(
        "--junit", type=Path, metavar="FILE", help="write what became of the entries as JUnit XML, too"
    )
    engine.arguments(command)
    command.add_argument(
        "--pages", type=Path, metavar="DIR", help="write the page of each thesis and the one over all here"
    )
    command.add_argument(
        "--to-store", action="store_true", help="put the outcomes into the store, for the dashboard Reproduction"
    )
    add_format(command)
    results(command)


def main(options: argparse.Namespace) -> int:
    """1 where an entry contradicts its thesis and no run shows why, or a run failed."""
    if options.jobs < 0:
        raise UsageError("--jobs takes numbers from 1 on (0: one per CPU)")
    engine.check(options)
    limit_s = quantities.delay_ns(options.within) / 1e9 if _is_time(options.within) else None
    bindings = read()
    entries = chosen(bindings, options.what)
    kept = {
        file: one for name in (*bindings.theses, *BEYOND) for file, one in recorded.read(options.record, name).items()
    }
    decider = Decider(bindings, options.results.resolve(), kept, costs.read(options.record))
    asked = {entry.id for entry in entries}
    chosen_files = [bound for bound in bindings.experiments if asked & {*bound.entries}]
    if options.beyond:
        chosen_files = [bound for bound in bindings.beyond if asked & {*bound.beyond}]
    bounds = _cheapest_first(chosen_files, decider)
    jobs = options.jobs or len(os.sched_getaffinity(0))
    failed: list[str] = []
    with spoken_aside(options.format):
        if not options.list and not options.no_run:
            failed = _run(bounds, decider, options, jobs, limit_s)
    judged = [decider.decide(entry) for entry in entries]
    _print(judged, bindings, bounds, decider, options, jobs)
    if options.junit:
        junit.write(options.junit, "reproduction", junit.of_entries(judged))
    if options.to_store:
        _store(judged, bindings)
    if options.pages:
        with spoken_aside(options.format):
            for file in _pages(options, bindings, decider):
                print(file)
    for name in failed:
        print(f"{name}: runs failed; its results folder says why", file=sys.stderr)
    if options.list:
        return 0
    return 1 if failed or any(one.failed for one in judged) else 0


def _is_time(text: str) -> bool:
    if not text:
        return False
    try:
        return quantities.delay_ns(text) > 0
    except ValueError as error:
        raise UsageError(f"--within {text}: {error}") from error


def _cheapest_first(bounds: Sequence[Bound], decider: Decider) -> list[Bound]:
    """So that a run that is stopped has decided as many entries as it can."""
    return sorted(bounds, key=lambda bound: (decider.cost([bound]).cpu_s, bound.file))


def _run(
    bounds: Sequence[Bound], decider: Decider, options: argparse.Namespace, jobs: int, limit_s: float | None
) -> list[str]:
    """Run what is missing, experiment by experiment; returns those with failed runs."""
    print(f"missing: {decider.cost(bounds).words(jobs)}")
    print("you can stop it at any time: the same command resumes")
    purge_aside(options.results.resolve())  # also where no run is missing, and so no engine starts
    begun, failed = time.monotonic(), []
    for bound in bounds:
        cost = decider.cost([bound])
        if not cost.runs:
            _report_again(bound, decider, options.results.resolve())
            continue
        left = None if limit_s is None else limit_s - (time.monotonic() - begun)
        if left is not None and cost.cpu_s / jobs > left:
            print(
                f"{bound.file}: left out, about {duration(cost.cpu_s / jobs)} where {duration(max(0.0, left))} are left"
            )
            continue
        print(f"{bound.file}: {cost.words(jobs)}", flush=True)
        run_command.of_file(bound.path, options)
        decider.forget(bound)
        # a run that could not even be kept as failed is missing as before
        if decider.standing(bound).failed or decider.cost([bound]).runs:
            failed.append(bound.file)
    return failed


def _report_again(bound: Bound, decider: Decider, results_folder: Path) -> None:
    """Write the report that a killed command owes its last runs; what it left of one goes with that."""
    standing = decider.standing(bound)
    place = Results(results_folder, standing.prepared.experiment.name)
    runs_ns = [(run.path / "run.json").stat().st_mtime_ns for run, _ in standing.done]
    report = place.folder / "report.html"
    if not runs_ns or (report.exists() and report.stat().st_mtime_ns >= max(runs_ns)):
        return
    names = answered_ids(standing.prepared, standing.prepared.experiment.host, place)
    print(f"report: {write_report(place.folder, names=names, asked=as_written(standing.prepared))}")


def _store(judged: Sequence[Judged], bindings: Bindings) -> None:
    from store import outcomes  # a command that reads no records starts without what reads them
    from store.connect import connected
    from store.migrate import require

    places = {entry.id: i for thesis in bindings.theses.values() for i, entry in enumerate(thesis.entries, start=1)}
    names = {bound.file: bound.experiment.name for bound in bindings.experiments}
    with connected("writer", autocommit=True) as connection:
        require(connection)
        outcomes.put(connection, judged, places, names)


def _print(
    judged: Sequence[Judged],
    bindings: Bindings,
    bounds: Sequence[Bound],
    decider: Decider,
    options: argparse.Namespace,
    jobs: int,
) -> None:
    if options.format == "json":
        print(json_text([_data(one, bindings) for one in judged]))
        return
    print_table(render([_row(one, bindings, brief=options.list) for one in judged], options.format))
    if options.format == "csv":
        return
    comparable = [one for one in judged if one.entry.comparable != "no"]
    print(
        f"{len(comparable)} entries that can be compared: "
        + ", ".join(f"{n} {word}" for word, n in counts(comparable).items())
    )
    print(f"missing: {decider.cost(bounds).words(jobs)}")


def _row(one: Judged, bindings: Bindings, *, brief: bool) -> dict[str, Any]:
    row = {"entry": one.entry.id, "title": one.entry.title, "comparable": one.entry.comparable, "outcome": one.word}
    return {**row, "decided by": bindings.how(one.entry.id)} if brief else {**row, "reason": one.reason}


def _data(one: Judged, bindings: Bindings) -> dict[str, Any]:
    return {
        "entry": one.entry.id, "title": one.entry.title, "where": one.entry.where.model_dump(),
        "comparable": one.entry.comparable,
        "outcome": one.outcome, "explained": one.explained, "reason": one.reason, "open": list(one.open_claims),
        "decided_by": bindings.how(one.entry.id),
        "evidence": [
            {"part": e.part, "kind": e.kind, "outcome": e.held, "by": e.by, "says": e.says, "published": e.published,
             "measured": e.measured, "seeds": e.seeds, "explains": e.explains, "reason": e.reason}
            for e in one.evidence
        ],
    }  # fmt: skip


def _pages(options: argparse.Namespace, bindings: Bindings, decider: Decider) -> list[Path]:
    """The pages of the theses that were asked for, whole, and the one over all, which the record makes possible."""
    asked = {entry.id.partition("-")[0] for entry in chosen(bindings, options.what)}
    judged = [decider.decide(entry) for entry in bindings.entries.values()]
    record = decider.record((*bindings.experiments, *bindings.beyond))
    return write_pages(options.pages, bindings.theses, judged, record, only=asked, beyond=decider.beyond())
