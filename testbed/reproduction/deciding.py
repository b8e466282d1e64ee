# SPDX-License-Identifier: Apache-2.0
"""What the entries came to, from the runs that are there and from calculations. Starts nothing."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from analysis import claims, published
from analysis.models import REGISTRY
from analysis.models.checks import Check
from analysis.reproduction.beyond import Beyond, Look, look
from analysis.reproduction.measured import BY_METRICS, EXPLAINED, MEASURED, compared
from analysis.reproduction.outcomes import Evidence, Judged, judged, of_checks, of_claim, of_row
from analysis.reproduction.recorded import NOWHERE, Recorded
from analysis.results import Run, load_experiment, show
from plan.model import Plan
from schema.catalogue import Entry
from schema.claims import Claim, Order, Sides
from schema.model import Experiment
from schema.repeats import Repeats
from testbed.commands.prepared import answered_ids
from testbed.experiments import Prepared, prepare
from testbed.identity import newest_of
from testbed.reproduction.bindings import Bindings, Bound
from testbed.reproduction.costs import Cost, Measured, of_plans, pace, speed, usual
from testbed.results import Results


@dataclass(frozen=True)
class Standing:
    """An experiment as its file is now.

    runs: those that answer it, one that is not there as missing; in place of one without a folder, the recorded one
    unfolded: what no folder answers; missing_params: of those, what no record answers either
    checks: recorded comparisons with a model, for experiments of which some run has no folder
    """

    bound: Bound
    prepared: Prepared
    runs: tuple[Run, ...]
    unfolded: tuple[Plan, ...]
    missing_params: tuple[Mapping[str, Any], ...]
    done: tuple[tuple[Run, Plan], ...]
    checks: Mapping[str, tuple[Check, ...]]

    @property
    def failed(self) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if run.status == "failed")


class Decider:
    """Reads each experiment's file and runs once."""

    def __init__(
        self,
        bindings: Bindings,
        results: Path,
        recorded: Mapping[str, Recorded] | None = None,
        measured: Mapping[str, Measured] | None = None,
    ) -> None:
        """recorded: experiment file → runs of others, in place of those that are not in `results`; measured: → what one run took"""
        self._bindings, self._results = bindings, results
        self._recorded, self._measured = recorded or {}, measured or {}
        self._standings: dict[Path, Standing] = {}

    def forget(self, bound: Bound) -> None:
        """It has new runs."""
        self._standings.pop(bound.path, None)

    def standing(self, bound: Bound) -> Standing:
        if bound.path not in self._standings:
            self._standings[bound.path] = self._read(bound)
        return self._standings[bound.path]

    def _read(self, bound: Bound) -> Standing:
        prepared = prepare(bound.path)
        results = Results(self._results, prepared.experiment.name)
        kind = prepared.experiment.host
        runs = load_experiment(results.folder, answered_ids(prepared, kind, results)) if results.folder.is_dir() else ()
        recorded = self._recorded.get(bound.file, Recorded())
        answers: list[Run] = []  # in the sweep's order, wherever they come from: figures and tables follow it
        unfolded, params, done = [], [], []
        repeats = prepared.experiment.repeats
        enough = repeats.least if isinstance(repeats, Repeats) else None
        begun: Counter[str] = Counter()
        for run, plan in zip(prepared.runs, prepared.plans, strict=True):
            answer, other = newest_of(run, kind, runs), newest_of(run, kind, recorded.runs)
            whole = answer is not None and answer.complete
            cell = repr(run.params)
            asked = enough is None or begun[cell] < enough  # more seeds only where claims need them
            begun[cell] += 1
            if answer is not None and whole:
                done.append((answer, plan))
            elif asked:
                unfolded.append(plan)
            if other is None and not whole and asked:
                params.append(run.params)
            best = other if other is not None and not whole else answer
            if best is not None:
                answers.append(best)
        return Standing(bound, prepared, tuple(answers), tuple(unfolded), tuple(params), tuple(done), recorded.checks)

    def cost(self, bounds: Sequence[Bound]) -> Cost:
        """Of what is missing."""
        standings = [self.standing(bound) for bound in bounds]
        here = [speed(standing.done) for standing in standings]
        there = [self._measured.get(bound.file) for bound in bounds]
        faster, otherwise, total = pace(zip(here, there, strict=True)), usual(here), Cost()
        for standing, own, one in zip(standings, here, there, strict=True):
            keep = standing.prepared.experiment.captures.keep
            known = own or (one.speed * faster if one else otherwise)
            total += of_plans(standing.unfolded, keep, known, one.bytes_per_s if one else None)
        return total

    def decide(self, entry: Entry) -> Judged:
        return judged(entry, list(self._evidence(entry)))

    def _evidence(self, entry: Entry) -> Iterator[Evidence]:
        if function := REGISTRY.get(entry.id):
            module: str = getattr(function, "func", function).__module__  # of a partial, that of what it calls
            yield from of_checks(list(function(entry)), module.replace(".", "/") + ".py")
        for bound in self._bindings.of(entry.id):
            yield from self._of_experiment(entry, bound)

    def _of_experiment(self, entry: Entry, bound: Bound) -> Iterator[Evidence]:
        standing = self.standing(bound)
        for claim in bound.experiment.claims:
            mine = [(name, which) for which in ("decides", "explains") for name in getattr(claim, which)]
            parts = [
                (name.partition("/")[2], which == "explains") for name, which in mine if name.startswith(f"{entry.id}/")
            ]
            if parts:
                finding = claims.check(claim, standing.runs, self._elsewhere)
                waiting = sum(about(claim, params) for params in standing.missing_params)
                for part, explains in parts:
                    one = of_claim(finding, part, bound.file, explains=explains, all_run=not waiting)
                    if waiting and one.held == "holds":  # so far
                        one = dataclasses.replace(
                            one, held="undecided", reason=f"so far it holds; {waiting} of its runs are missing"
                        )
                    yield one
        for table in bound.experiment.published:
            decided = [name.partition("/")[2] for name in table.decides if name.startswith(f"{entry.id}/")]
            for row in published.compare([table], standing.runs) if decided else ():
                yield from (of_row(row, part, bound.file, ordered=table.tolerance is None) for part in decided)
        yield from self._beside_model(entry, standing)

    def _beside_model(self, entry: Entry, standing: Standing) -> Iterator[Evidence]:
        for names, parts, _, explains in compared(entry.id, standing.prepared.experiment.name):
            evidence = list(of_checks(self.checks(entry, standing), standing.bound.file))
            if not evidence or any(self.standing(bound).missing_params for bound in self._named(names)):
                evidence += [Evidence(part, "order", "not run yet", standing.bound.file) for part in parts]
            yield from (dataclasses.replace(one, explains=True) for one in evidence) if explains else evidence

    def beyond(self) -> list[Beyond]:
        """What became of claims on drawn paths and under other choices, in the order of their files."""
        return [one for bound in self._bindings.beyond for one in self._beyond(bound)]

    def _beyond(self, bound: Bound) -> Iterator[Beyond]:
        standing = self.standing(bound)
        sweep = standing.prepared.experiment.sweep
        around = ""
        if sweep is not None and sweep.drawn is not None:
            settings = [f"{name} {one.value} (×÷ {one.factor:g})" for name, one in sweep.drawn.around.items()]
            around = f"{', '.join(settings)}, seed {sweep.drawn.seed}"
        asked = [run.params for run in standing.prepared.runs]
        for claim in bound.experiment.claims:
            for which in get_args(Look):
                if getattr(claim, which):
                    yield look(claim, which, bound.file, standing.runs, asked, standing.missing_params, around)

    def checks(self, entry: Entry, standing: Standing) -> list[Check]:
        """What comparing an experiment's runs with a model came to, from the runs' records, else from what was noted of them."""
        asked = list(compared(entry.id, standing.prepared.experiment.name))
        found: list[Check] = []
        for names, _, function, _ in asked:
            if function in BY_METRICS:
                runs = [run for bound in self._named(names) for run in self.standing(bound).runs]
                found += function(entry, runs) if any(run.counted for run in runs) else ()
        functions = [function for _, _, function, _ in asked if function not in BY_METRICS]
        noted = standing.checks.get(entry.id, ())
        if not functions:
            return found
        if not standing.done or (noted and any(run.path == NOWHERE and run.complete for run in standing.runs)):
            return list(noted)  # they rest on runs whose records are not here
        folders = [run for run in standing.runs if run.path != NOWHERE]
        return [*found, *(check for function in functions for check in function(entry, folders))]

    def record(self, bounds: Sequence[Bound]) -> dict[str, tuple[Experiment, Recorded]]:
        """What the pages need of each experiment that has runs: file → (experiment, runs and comparisons)."""
        by_file = {}
        for bound in bounds:
            standing = self.standing(bound)
            runs = tuple(run for run in standing.runs if run.complete)
            if not runs:
                continue
            names = [name for one in (MEASURED, EXPLAINED) for name, first in one if first == bound.experiment.name]
            checks = {name: tuple(self.checks(self._bindings.entries[name], standing)) for name in names}
            by_file[bound.file] = (
                bound.experiment,
                Recorded(runs, {name: all_ for name, all_ in checks.items() if all_}),
            )
        return by_file

    def _named(self, names: Sequence[str]) -> Iterator[Bound]:
        yield from (bound for bound in self._bindings.experiments if bound.experiment.name in names)

    def _elsewhere(self, name: str) -> Sequence[Run]:
        own = next((bound for bound in self._bindings.experiments if bound.experiment.name == name), None)
        return load_experiment(self._results / name) if own is None else self.standing(own).runs


def about(claim: Claim, params: Mapping[str, Any]) -> bool:
    """Whether a claim speaks of the runs with these parameters."""
    relation = claim.relation
    sides: list[Mapping[str, Any]] = (
        [relation.first.where, relation.second.where] if isinstance(relation, Sides) else [{}]
    )
    if isinstance(relation, Order) and relation.of is not None:
        sides = [{relation.of: value} for value in relation.values or ()]
    return any(
        all(show(params.get(name)) == show(value) for name, value in {**claim.where, **side}.items()) for side in sides
    )


def counts(judged: Sequence[Judged]) -> Mapping[str, int]:
    """How many entries came to what, in the words of `Judged.word`."""
    outcomes = [one.word for one in judged]
    return {word: outcomes.count(word) for word in dict.fromkeys(sorted(outcomes))}
