# SPDX-License-Identifier: Apache-2.0
"""From an experiment file to jobs: validated, expanded, compiled and linted before anything starts."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from analysis import metrics
from analysis.errors import AnalysisError
from analysis.expectations import parse
from base.errors import Problem, SpecError
from base.nearest import nearest
from plan.model import Plan
from schema.load import Document, Loc, load
from schema.model import Experiment
from schema.repeats import Repeats
from testbed import recorded
from testbed.claims import check_claims
from testbed.compile import compile_plan
from testbed.compile_traffic import is_random
from testbed.lint import Finding, lint, phase_effects
from testbed.runs import PlannedRun, changed_values, count_runs, expand

MAX_RUNS = 100_000
MOST_PARTS, PLAN_PARTS = 500_000, 40
"""Of all plans together, which are made before anything starts: their links, flows and entries of traffic, and what a plan
costs by itself. A part takes some 20 µs, so that all take about ten seconds. Where nothing is random, runs that differ in
their seeds alone share a plan."""


@dataclass(frozen=True)
class Prepared:
    """An experiment with the plan of each run, and what the lint says of all of them."""

    experiment: Experiment
    document: Document
    runs: list[PlannedRun]
    plans: list[Plan]
    findings: list[Finding]

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity == "error"]


def prepare(path: Path, seed: int | None = None, host: str | None = None) -> Prepared:
    """Read and check everything about an experiment file; host: the kind that executes it, where it is not the file's.

    Raises SpecError or UsageError; starts nothing.
    """
    experiment, document = load(path)
    _check_metrics(experiment, document)
    seeds = None if seed is None else [seed]
    if (count := count_runs(experiment, seeds)) > MAX_RUNS:
        raise SpecError([Problem(str(path), document.line(("sweep",)), "sweep", f"{count} runs; at most {MAX_RUNS}")])
    cells = count // len(seeds or experiment.all_seeds())
    parts = cells * (PLAN_PARTS + changed_values(document, experiment))
    _check_parts(document, count, parts)
    runs = expand(document, experiment, seeds)
    plans: list[Plan] = []
    findings: list[Finding] = []
    firsts: list[Plan] = []
    parts = 0
    for _, grouped in itertools.groupby(runs, key=lambda run: id(run.experiment)):
        cell = list(grouped)
        exact = _is_exact(cell[0].experiment, host)
        first = compile_plan(cell[0].experiment, cell[0].document, cell[0].seed, exact, host)
        made = len(cell) if is_random(cell[0].experiment) else 1
        parts += made * _parts(first)
        _check_parts(document, count, parts)
        plans += _compiled(cell, host, first)
        firsts.append(first)
        # what is said of a plan is said of its network and of who sends to whom, which no seed changes
        findings += lint(first)
        findings += [] if _is_exact(runs[0].experiment, host) else phase_effects(first)
    recorded.check(experiment, document, firsts)
    return Prepared(experiment, document, runs, plans, list(dict.fromkeys(findings)))


def _is_exact(experiment: Experiment, host: str | None) -> bool:
    """Whether hosts take no time of the model's for a packet; all runs of a file have one host (testbed.runs.OF_ALL_RUNS)."""
    return (host or experiment.host) != "virtual"


def _compiled(runs: Sequence[PlannedRun], host: str | None, first: Plan) -> list[Plan]:
    """The plans of runs that differ in their seeds only; one plan, where nothing in it is random. first: of the first run"""
    experiment, document = runs[0].experiment, runs[0].document
    if not is_random(experiment):
        return [first] * len(runs)
    exact = _is_exact(experiment, host)
    return [first, *(compile_plan(experiment, document, run.seed, exact, host, like=first) for run in runs[1:])]


def _parts(plan: Plan) -> int:
    """A tenth for each arrival or period that is drawn, which is a number or two."""
    settings = (value for part in plan.traffic for value in part.settings.values())
    drawn = sum(len(value) for value in settings if isinstance(value, list | tuple))
    return PLAN_PARTS + len(plan.network.links) + len(plan.flows) + len(plan.traffic) + drawn // 10


def _check_parts(document: Document, runs: int, parts: int) -> None:
    if parts > MOST_PARTS:
        message = (
            f"{runs} runs, whose plans have {parts} and more links, flows, entries of traffic and swept values together; at most "
            f"{MOST_PARTS}: sweep fewer values, or divide them among files"
        )
        raise SpecError([Problem(document.file, document.line(("sweep",)), "sweep", message)])


def _check_metrics(experiment: Experiment, document: Document) -> None:
    problems = []

    def problem(loc: Loc, message: str) -> None:
        problems.append(Problem(document.file, document.line(loc), ".".join(map(str, loc)), message))

    for i, name in enumerate(experiment.metrics):
        try:
            metrics.find(name)
        except AnalysisError as error:
            problem(("metrics", i), str(error))
    swept = set() if experiment.sweep is None else set(experiment.sweep.parameters)
    if isinstance(experiment.repeats, Repeats):
        for i, precision in enumerate(experiment.repeats.precisions):
            try:
                metrics.find(precision.metric)
            except AnalysisError as error:
                problem(("repeats", "until", i, "metric"), str(error))
    for section, bounds in (("expectations", experiment.expectations), ("guards", experiment.guards)):
        for i, expectation in enumerate(bounds):
            try:
                parse(expectation.model_dump(exclude_none=True))
            except AnalysisError as error:
                problem((section, i), str(error))
            for name in set(expectation.where) - swept:
                problem((section, i, "where"), f"{name!r} is not a parameter of the sweep; {nearest(name, swept)}")
    check_claims(experiment, problem)
    for i, table in enumerate(experiment.published):
        try:
            unit = metrics.find(table.metric).unit
        except AnalysisError as error:
            problem(("published", i, "metric"), str(error))
            continue
        if table.unit is not None and table.unit != unit:
            problem(("published", i, "unit"), f"{table.metric} is in {unit!r}, not {table.unit!r}; convert the values")
        for j, row in enumerate(table.values):
            for name in set(row.where) - swept:
                problem(
                    ("published", i, "values", j), f"{name!r} is not a parameter of the sweep; {nearest(name, swept)}"
                )
    if problems:
        raise SpecError(problems)
