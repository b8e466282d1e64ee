# SPDX-License-Identifier: Apache-2.0
"""`./warpbed evaluate CCA`: RFC 9743's criteria as experiments, each beside CUBIC and Reno, and one report."""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from analysis.evaluation.outcomes import FAILS, Judged, as_data
from analysis.evaluation.page import page
from analysis.evaluation.table import table
from base.errors import SpecError, UsageError
from base.files import replace_text
from base.nearest import nearest
from base.paths import ROOT
from base.screen import print_table
from base.text import json_text
from base.watcher import watched_folder
from kernels import series
from schema.names import algorithms
from testbed import junit
from testbed.commands import run as run_command
from testbed.commands.arguments import results
from testbed.commands.output import add_format, render, spoken_aside
from testbed.engine import options as engine
from testbed.evaluation import kernels
from testbed.evaluation.deciding import decided, not_possible
from testbed.evaluation.derive import Evaluation, chosen, evaluations, of_kernel, written
from testbed.evaluation.modules import checkout, name_of
from testbed.experiments import prepare

HELP = "hold an algorithm against RFC 9743's criteria, beside CUBIC and Reno, and write a report"
FOLDER = "evaluations"
"""Below the results: derived files and, by algorithm, page, JSON and JUnit."""


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("algorithm", nargs="*", metavar="CCA", help="algorithms (./warpbed list algorithms)")
    command.add_argument("--module", type=Path, metavar="FOLDER", help="a folder with a module tcp_NAME.c of your own")
    command.add_argument(
        "--kernel",
        default="default",
        metavar="KERNEL",
        help=f"{', '.join(series.NAMES)}, or a kernel's tree, tarball or build (a folder of ./warpbed build-kernels)",
    )
    command.add_argument(
        "--quick", action="store_true", help="of every parameter but the algorithm the first value, and two seeds"
    )
    command.add_argument("--only", default="", metavar="NAME,…", help="only these files of experiments/evaluate")
    command.add_argument("--no-run", action="store_true", help="decide from the runs that are there")
    command.add_argument("--jobs", type=int, default=0, metavar="N", help="runs in parallel (default: one per CPU)")
    command.add_argument("--table", type=Path, metavar="FILE", help="write a table over the algorithms, as Markdown")
    engine.arguments(command)
    add_format(command)
    results(command)


def main(options: argparse.Namespace) -> int:
    """1 where a criterion fails or a run failed."""
    if options.jobs < 0:
        raise UsageError("--jobs takes numbers from 1 on (0: one per CPU)")
    engine.check(options)
    if options.table and options.kernel != "default":
        raise UsageError("--table is a page of the project's own kernel; leave it or --kernel out")
    of_a_series = kernels.is_series(options.kernel)
    if options.module is not None:
        if not of_a_series:
            raise UsageError("--module is built for a series; name one with --kernel, or leave it out")
        return _with_module(options)
    if not options.algorithm:
        raise UsageError("name an algorithm of ./warpbed list algorithms, or give --module FOLDER")
    for name in options.algorithm:
        if name not in algorithms():
            raise UsageError(f"there is no algorithm {name!r}; {nearest(name, algorithms())}")
    listed = chosen(options.only, evaluations())
    if not of_a_series:
        return _with_build(options)
    kernel, folder = series.of(options.kernel), options.results.resolve() / FOLDER
    by_algorithm: dict[str, list[Judged]] = {}
    failed: list[str] = []
    for algorithm in options.algorithm:
        files = [(one, written(one, algorithm, options.quick, folder, kernel)) for one in listed]
        not_there = {one.name: why for one, file in files if (why := _why_not(file, kernel))}
        with spoken_aside(options.format):
            if not options.no_run:
                failed += _run([(one, file) for one, file in files if one.name not in not_there], options)
        place = folder / of_kernel(algorithm, kernel)
        by_algorithm[algorithm] = [
            not_possible(one, not_there[one.name])
            if one.name in not_there
            else decided(one, file, options.results.resolve(), place)
            for one, file in files
        ]
        _write(place, algorithm, by_algorithm[algorithm], options)
    _print(by_algorithm, folder, options)
    if options.table:
        before = options.table.read_text() if options.table.is_file() else ""
        names = [one.name for one in evaluations()]
        replace_text(options.table, table(by_algorithm, quick=options.quick, before=before, criteria=names))
    for name in failed:
        print(f"{name}: runs failed; its results folder says why", file=sys.stderr)
    return 1 if failed or any(one.outcome == FAILS for judged in by_algorithm.values() for one in judged) else 0


def _why_not(file: Path, kernel: str) -> str:
    """Why a kernel that is not the default one cannot have a criterion; empty where it can."""
    if kernel == series.DEFAULT:
        return ""
    try:
        return "; ".join(finding.message for finding in prepare(file).errors)
    except SpecError as error:
        return "; ".join(problem.message for problem in error.problems)


def _run(files: Sequence[tuple[Evaluation, Path]], options: argparse.Namespace) -> list[str]:
    """Make the missing runs of each file; returns the files of which runs failed."""
    failed = []
    for number, (one, file) in enumerate(files, start=1):
        print(f"{one.name} ({number} of {len(files)}): {one.criterion.document}, {one.criterion.section}", flush=True)
        run_command.of_file(file, options)
        judged = decided(one, file, options.results.resolve(), file.parent)
        if any(judged.verdicts.get(status) for status in ("failed", "missing", "unreadable")):
            failed.append(one.name)
    return failed


def _write(folder: Path, algorithm: str, criteria: Sequence[Judged], options: argparse.Namespace) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    argv = ["./warpbed", "evaluate", algorithm, *(["--quick"] if options.quick else [])]
    argv += ["--only", options.only] if options.only else []
    argv += ["--kernel", options.kernel] if options.kernel != "default" else []
    kernel = kernels.words(options.kernel)
    files = {"JSON": "evaluation.json", "JUnit": "junit.xml"}
    about = {"kernel": kernel, "quick": options.quick, "command": shlex.join(argv), "files": files}
    data = {
        "format": 1,
        "algorithm": algorithm,
        "kernel": kernel,
        "quick": options.quick,
        "criteria": as_data(criteria),
    }
    replace_text(folder / files["JSON"], json_text(data) + "\n")
    junit.write(folder / files["JUnit"], f"evaluate.{algorithm}", junit.of_criteria(criteria))
    replace_text(folder / "index.html", page(algorithm, criteria, about))


def _print(by_algorithm: dict[str, list[Judged]], folder: Path, options: argparse.Namespace) -> None:
    rows: list[dict[str, Any]] = [
        {
            "algorithm": algorithm,
            "criterion": one.name,
            "level": one.level,
            "section": one.section,
            "outcome": one.outcome,
            "why": "; ".join(said.says for said in one.said if said.outcome == "contradicted") or one.why_not,
        }
        for algorithm, judged in by_algorithm.items()
        for one in judged
    ]
    if options.format == "json":
        print(json_text({name: as_data(judged) for name, judged in by_algorithm.items()}))
        return
    print_table(render(rows, options.format))
    if options.format == "table":
        for algorithm, judged in by_algorithm.items():
            counts = Counter(one.outcome for one in judged)
            print(f"{algorithm}: " + ", ".join(f"{count} {name}" for name, count in counts.items()))
            print(f"report: {folder / of_kernel(algorithm, series.of(options.kernel)) / 'index.html'}")


def _with_module(options: argparse.Namespace) -> int:
    """The same command in a copy of this checkout that has the module; results are where they would be."""
    if options.algorithm or options.table:
        raise UsageError("--module says which algorithm; leave the names and --table out")
    folder = options.module.resolve()
    name = name_of(folder)
    with watched_folder("warpbed-evaluate-") as scratch:
        copy = checkout(folder, scratch / "checkout")
        command = ["./warpbed", "evaluate", name, "--kernel", options.kernel, *_same(options, options.results)]
        return subprocess.run(command, cwd=copy, env=kernels.plain(), check=False).returncode


def _with_build(options: argparse.Namespace) -> int:
    """The same command on a kernel of the user's own; its results are in a folder of its own, for files do not name such a kernel."""
    build = kernels.build_of(Path(options.kernel))
    facts = kernels.facts_of(build)
    named = facts["series"] if facts["series"] in series.NAMES else "default"  # says what such a kernel lacks
    results = options.results / FOLDER / "kernels" / facts["key"]
    command = ["./warpbed", "evaluate", *options.algorithm, "--kernel", named, *_same(options, results)]
    environment = {**kernels.plain(), kernels.BUILD: str(build)}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def _same(options: argparse.Namespace, results: Path) -> list[str]:
    """This command's other options, for a command that does the work."""
    words = ["--results", str(results.resolve()), "--format", options.format]
    words += ["--jobs", str(options.jobs), "--only", options.only, *engine.words(options)]
    return words + [flag for flag, is_on in (("--quick", options.quick), ("--no-run", options.no_run)) if is_on]
