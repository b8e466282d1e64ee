# SPDX-License-Identifier: Apache-2.0
"""The page's contents before any HTML: headings, guards, tables and the data of the figures."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup
from pydantic import ValidationError

from analysis import expectations, precision, published
from analysis.errors import AnalysisError, ExpectationError
from analysis.metrics import REGISTRY, Metric
from analysis.report import lacking, topology
from analysis.report.applications import Application, applications
from analysis.report.claims import ClaimRow, claim_rows
from analysis.report.data import TABLE_METRICS, duration_s_of, figure_data
from analysis.report.settings import Settings, settings_of
from analysis.results import Run, earlier_attempts, load_experiment, parameters, show
from analysis.statistics import Cell, cells, is_number
from analysis.table import number, problems, spread

STANDINGS = ("valid", "suspect", "invalid", "failed", "unreadable", "no verdict", "missing")


@dataclass(frozen=True)
class Guard:
    """A row of the table of guards: of the file's `guards`, and of its `expectations`."""

    text: str
    where: str
    bound: str
    measured: str
    outcome: str
    reason: str
    source: str


@dataclass(frozen=True)
class Drawing:
    """A network of the sweep; links say all the values that they take in it."""

    caption: str
    svg: Markup | None
    network: topology.Network


@dataclass(frozen=True)
class Written:
    """The experiment file as it is now: its path for the commands to run again, and its content as plain data."""

    file: str
    spec: Mapping[str, Any]


@dataclass(frozen=True)
class View:
    title: str
    experiment: str
    question: str
    runs: tuple[Run, ...]
    params: tuple[str, ...]
    standings: Mapping[str, int]
    guards: tuple[Guard, ...]
    guard_outcomes: Mapping[str, int]
    claims: tuple[ClaimRow, ...]
    claim_outcomes: Mapping[str, int]
    claims_problem: str
    precision: tuple[str, ...]
    published: tuple[published.Row, ...]
    published_problem: str
    published_outcomes: Mapping[str, int]
    drawings: tuple[Drawing, ...]
    facts: tuple[tuple[str, str], ...]
    cells: tuple[Cell, ...]
    metrics: tuple[Metric, ...]
    environment: tuple[Settings, ...]
    earlier: tuple[Run, ...]
    repeated: int
    applications: tuple[Application, ...]
    commands: tuple[str, ...]
    spec: str
    data: Mapping[str, Any]

    # The template's helpers: how values are written is decided here, once.
    show = staticmethod(show)
    number = staticmethod(number)
    spread = staticmethod(spread)
    problems = staticmethod(problems)
    run_lacks = staticmethod(lacking.of_run)
    cell_lacks = staticmethod(lacking.of_cell)
    unknown_of = staticmethod(lacking.unknown)

    @property
    def notes_of_runs(self) -> tuple[tuple[str, str], ...]:
        return lacking.notes(self.metrics, lacking.of_run, [run for run in self.runs if run.complete])

    @property
    def notes_of_cells(self) -> tuple[tuple[str, str], ...]:
        return lacking.notes(self.metrics, lacking.of_cell, self.cells)

    @property
    def complete(self) -> int:
        return sum(run.complete for run in self.runs)

    def length_s(self, run: Run) -> float:
        """How long a run is on its own clock; 60 where nothing says it, as the dashboards have it."""
        return duration_s_of([run]) or 60.0

    @property
    def definitions(self) -> tuple[Metric, ...]:
        return tuple(REGISTRY.values())


def view(folder: Path, names: Sequence[str] | None = None, asked: Written | None = None) -> View:
    """The page of results/<experiment>; `names` as for `load_experiment`."""
    runs = load_experiment(folder, names)
    spec: Mapping[str, Any] = next((run.spec for run in runs if run.spec), {})
    written = asked.spec if asked else spec
    experiment = next((run.experiment for run in runs if run.spec), folder.name)
    guards = tuple(_guards(written, runs))
    claimed, claims_problem = claim_rows(written, runs, folder)
    beside, beside_problem = _published(written, runs)
    groups = cells(runs)
    return View(
        title=str(written.get("title") or experiment),
        experiment=experiment,
        question=str(written.get("question") or written.get("description") or ""),
        runs=runs,
        params=parameters(runs),
        standings={name: count for name in STANDINGS if (count := sum(run.standing == name for run in runs))},
        guards=guards,
        guard_outcomes=_count(guard.outcome for guard in guards),
        claims=claimed,
        claim_outcomes=_count(row.outcome for row in claimed),
        claims_problem=claims_problem,
        precision=tuple(standing.words() for standing in precision.of_spec(written, runs)),
        published=beside,
        published_problem=beside_problem,
        published_outcomes=_count(row.outcome for row in beside),
        drawings=_drawings(runs),
        facts=tuple(_facts(spec, runs)),
        cells=groups,
        metrics=tuple(REGISTRY[name] for name in TABLE_METRICS),
        environment=settings_of([run.environment for run in runs if run.environment]),
        earlier=earlier_attempts(folder) if names is None else (),
        repeated=sum(len(cell.runs) - len({run.seed for run in cell.runs}) for cell in groups),
        applications=applications(runs),
        commands=_commands(asked.file if asked else f"experiments/{experiment}.yml"),
        spec=json.dumps(spec, indent=2, ensure_ascii=False, default=str) if spec else "",
        data=figure_data(runs, groups),
    )


def _published(spec: Mapping[str, Any], runs: Sequence[Run]) -> tuple[tuple[published.Row, ...], str]:
    """The paper's numbers beside the measured ones, or what is wrong with them."""
    try:
        return published.compare(published.parse_all(spec.get("published")), runs), ""
    except (ValidationError, AnalysisError, TypeError) as error:
        return (), str(error)


def _guards(spec: Mapping[str, Any], runs: Sequence[Run]) -> list[Guard]:
    guards = []
    listed = [rows for name in ("guards", "expectations") if isinstance(rows := spec.get(name), list)]
    for row in (row for rows in listed for row in rows):
        try:
            finding = expectations.check(expectations.parse(row if isinstance(row, dict) else {}), runs)
        except ExpectationError as error:
            guards.append(Guard(show(row), "", "", "", "not comparable", str(error), ""))
            continue
        claim = finding.expectation
        values = [value for value in finding.values.values() if value is not None]
        guards.append(
            Guard(
                text=claim.metric,
                where=", ".join(f"{name} = {show(value)}" for name, value in claim.where.items()) or "all runs",
                bound=claim.bound,
                measured=_range(values),
                outcome=finding.outcome,
                reason="; ".join(part for part in (finding.reason, claim.note) if part),
                source=claim.source,
            )
        )
    return guards


def _range(values: Sequence[Any]) -> str:
    numbers = sorted(value for value in values if is_number(value))
    if not numbers:
        return ", ".join(dict.fromkeys(show(value) for value in values))
    low, high = number(numbers[0]), number(numbers[-1])
    return low if low == high else f"{low} … {high}"


def _drawings(runs: Sequence[Run]) -> tuple[Drawing, ...]:
    """Each different network once; those that differ in rates, delays or buffers only are one drawing."""
    by_drawing: dict[str, list[tuple[topology.Network, list[str], Run]]] = {}
    for run in runs:
        network = topology.parse(run.environment.get("topology"))
        if network is None:
            continue
        flows = run.spec.get("flows")
        flows = [flow for flow in flows if isinstance(flow, dict)] if isinstance(flows, list) else []
        senders = [str(flow.get("from") or flow.get("src")) for flow in flows]
        senders = [name for name in senders if name in network.kinds]
        key = json.dumps([network.kinds, [(link.a, link.b) for link in network.links], senders])
        by_drawing.setdefault(key, []).append((network, senders, run))
    drawn = []
    for members in by_drawing.values():
        network = topology.merge([network for network, _, _ in members])
        caption = _telling([run for _, _, run in members], runs) if len(by_drawing) > 1 else ""
        drawn.append(Drawing(caption, topology.draw(network, members[0][1]), network))
    return tuple(drawn)


def _telling(some: Sequence[Run], runs: Sequence[Run]) -> str:
    """The parameters that these runs share and others of the experiment do not."""
    parts = []
    for name in parameters(runs):
        values = {show(run.params.get(name)) for run in some}
        if len(values) == 1 and len({show(run.params.get(name)) for run in runs if run.params}) > 1:
            parts.append(f"{name} = {values.pop()}")
    return ", ".join(parts)


def _facts(spec: Mapping[str, Any], runs: Sequence[Run]) -> list[tuple[str, str]]:
    """The setup in a few lines."""
    facts = []
    named = spec.get("topology")
    if isinstance(named, dict) and named.get("name"):
        facts.append(("Topology", str(named["name"])))
    for name in parameters(runs):
        values = dict.fromkeys(show(run.params[name]) for run in runs if name in run.params)
        facts.append((name, ", ".join(values)))
    seeds = sorted({run.seed for run in runs if isinstance(run.seed, int)})
    if seeds:
        facts.append(("Seeds", ", ".join(str(seed) for seed in seeds)))
    duration_s = duration_s_of(runs)
    if duration_s:
        facts.append(("Duration", f"{duration_s:g} s"))
    hosts = dict.fromkeys(run.host for run in runs if run.host)
    if hosts:
        facts.append(("Host", ", ".join(hosts)))
    walls = [run.timing["wall_s"] for run in runs if is_number(run.timing.get("wall_s"))]
    if walls:
        facts.append(("Wall time", f"{sum(walls):.0f} s over all runs"))
    return facts


def _commands(file: str) -> tuple[str, ...]:
    quoted = shlex.quote(file)
    return (f"./warpbed run {quoted}", f"./warpbed compare {quoted}", f"./warpbed metrics {quoted} --format json")


def _count(names: Any) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return counts
