# SPDX-License-Identifier: Apache-2.0
"""From an experiment to its runs: sweep × seeds, each resolved and with an id.

The id holds a hash of everything that decides the result (resolved experiment, seed, host kind, kernel, the modules
that the run loads), so a run that is there needs not be done again, a changed file makes new runs, and a changed module
makes new runs of what loads it.
"""

from __future__ import annotations

import copy
import itertools
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from base.cache import digest
from base.errors import Problem, SpecError
from kernels import series as kernel_series
from schema.base import Scalar
from schema.load import Document, Loc, validate
from schema.model import AUTO_OVERHEAD, Experiment, Sweep
from testbed.network import trace_digests

NOT_IN_HASH = {
    "title",
    "question",
    "source",
    "criterion",
    "sweep",
    "repeats",
    "seeds",
    "metrics",
    "claims",
    "guards",
    "expectations",
    "published",
    "host",
}
"""Parts of a file that change nothing in the packets of a run."""
KEPT_AS = ("keep", "compress")
"""The same of its captures."""

OF_ALL_RUNS = ("host",)
"""Keys that one command reads once: a sweep over them would run all on the first and call it by the others' names."""
LABEL_CHARACTERS = 160
"""Of the swept values in a run's id: with seed, hash and what is appended it stays below a file name's 255."""


@dataclass(frozen=True)
class FileInputs:
    """What of a run's inputs comes from its file. traces: name → SHA-256 of each trace that the topology names."""

    spec: str
    seed: int
    host: str
    traces: Mapping[str, str]


@dataclass(frozen=True)
class PlannedRun:
    """One run: an experiment without a sweep, the parameters that made it, a seed, and where its values stand."""

    experiment: Experiment
    params: dict[str, Scalar]
    seed: int
    document: Document

    def spec(self) -> dict[str, Any]:
        """The resolved experiment as plain data."""
        spec: dict[str, Any] = self.experiment.model_dump(mode="json", by_alias=True)
        spec["sweep"] = None
        return spec

    def inputs(self, host: str) -> FileInputs:
        """What decides the result and stands in the experiment file or beside it."""
        spec = self.spec()
        if host != "virtual" and spec["hosts"]["overhead"] == AUTO_OVERHEAD:  # hosts in real time take their own time
            spec["hosts"]["overhead"] = None
        return FileInputs(
            spec_digest(spec), self.seed, host, trace_digests(spec["topology"], Path(self.document.file).parent)
        )

    def run_id(self, host: str, build: str) -> str:
        """Readable parameters, seed, and a hash of what decides the result.

        build: identifies the kernel and the modules that the run loads (hosts.identity)
        """
        return f"{self.label()}-{digest([asdict(self.inputs(host)), build])[:8]}"

    def label(self) -> str:
        """The run's id without its hash: the swept values and the seed."""
        values = [re.sub(r"[^A-Za-z0-9.]+", "_", str(value))[:24] for value in self.params.values()]
        readable = "-".join(values).replace(".failed", "_failed")  # a name of our own for failed attempts
        if len(readable) > LABEL_CHARACTERS:
            readable = f"{readable[:LABEL_CHARACTERS]}_{digest(values)[:8]}"
        return f"{readable}-s{self.seed}" if readable else f"s{self.seed}"


def count_runs(experiment: Experiment, seeds: list[int] | None = None) -> int:
    """How many runs `expand` would make, without making them."""
    sweep, cells = experiment.sweep, 1
    if sweep is not None:
        product = math.prod(len(values) for values in sweep.factorial.values()) if sweep.factorial else 0
        given = product * len(sweep.combinations) if sweep.crossed else product + len(sweep.combinations)
        cells = max(1, given) * (sweep.drawn.count if sweep.drawn else 1)
    return cells * len(seeds or experiment.all_seeds())


def spec_digest(spec: Mapping[str, Any]) -> str:
    """A hash of what of a resolved experiment decides its packets.

    What is not set does not count, so that a key which later versions add changes no digest of files without it.
    """
    return digest(decisive(spec))[:20]


def decisive(spec: Mapping[str, Any]) -> Any:
    """What of a resolved experiment decides its packets, without what is not set."""
    parts = {key: value for key, value in spec.items() if key not in NOT_IN_HASH}
    if isinstance(parts.get("captures"), dict):  # whether files stay is decided after the run
        parts["captures"] = {key: value for key, value in parts["captures"].items() if key not in KEPT_AS}
    return _given(parts)


def _given(value: Any) -> Any:
    """Plain data without what is None or empty."""
    if isinstance(value, dict):
        parts = {key: _given(part) for key, part in value.items()}
        return {key: part for key, part in parts.items() if part is not None and part != {} and part != []}
    return [_given(part) for part in value] if isinstance(value, list) else value


def expand(document: Document, experiment: Experiment, seeds: list[int] | None = None) -> list[PlannedRun]:
    """All runs of a file, in the order of its sweep, seeds innermost.

    Raises SpecError where a swept value does not fit its place.
    """
    runs = []
    for params, locations in _cells(document, experiment):
        data, lines = _with(document, experiment, params, locations)
        place = document.with_lines(lines)
        resolved = validate(data, place)
        runs += [PlannedRun(resolved, params, seed, place) for seed in seeds or experiment.all_seeds()]
    _check_kernels(document, runs)
    return runs


def _check_kernels(document: Document, runs: list[PlannedRun]) -> None:
    """Two names of one kernel would be the same runs twice, and look like a comparison of kernels."""
    named = sorted({run.experiment.kernel for run in runs})
    for name in named:
        if name != kernel_series.of(name) in named:
            message = f"{name} is {kernel_series.of(name)}, which the sweep names too; leave one of them out"
            raise SpecError([Problem(document.file, document.line(("sweep",)), "sweep", message)])


def _cells(document: Document, experiment: Experiment) -> Iterator[tuple[dict[str, Scalar], dict[str, Loc]]]:
    """Combinations of parameters, each with the place in the file that its values come from."""
    sweep = experiment.sweep
    if sweep is None:
        yield {}, {}
        return
    given = list(_given_cells(sweep)) or [({}, {})]
    for path in sweep.paths():
        places: dict[str, Loc] = {name: ("sweep", "drawn", "around", name) for name in path}
        for params, locations in given:
            yield {**params, **path}, {**locations, **places}


def _given_cells(sweep: Sweep) -> Iterator[tuple[dict[str, Scalar], dict[str, Loc]]]:
    """Those of factorial and list."""
    listed: list[tuple[dict[str, Scalar], dict[str, Loc]]] = [
        (dict(entry), {name: ("sweep", "list", number, name) for name in entry})
        for number, entry in enumerate(sweep.combinations)
    ]
    if not sweep.crossed:
        yield from _factorial_cells(sweep)
        yield from listed
        return
    for all_of_them, their_places in _factorial_cells(sweep):
        for entry, places in listed:
            params = {**all_of_them, **entry}
            yield {name: params[name] for name in sweep.parameters if name in params}, {**their_places, **places}


def _factorial_cells(sweep: Sweep) -> Iterator[tuple[dict[str, Scalar], dict[str, Loc]]]:
    names = list(sweep.factorial)
    # the product of no parameters would be one run without any
    for indices in itertools.product(*(range(len(sweep.factorial[name])) for name in names)) if names else ():
        chosen = list(zip(names, indices, strict=True))
        yield (
            {name: sweep.factorial[name][i] for name, i in chosen},
            {name: ("sweep", "factorial", name, i) for name, i in chosen},
        )


def _with(
    document: Document, experiment: Experiment, params: dict[str, Scalar], locations: dict[str, Loc]
) -> tuple[dict[str, Any], dict[Loc, int]]:
    """The file's data with the parameters in their places and without the sweep, and the line that each of those came from.

    Parts that no parameter changes are those that were validated with the file, which all runs share: a sweep is as
    cheap as what it changes.
    """
    assert isinstance(document.data, dict)
    texts, changed = _places(experiment), _changed(document, experiment)
    data = {
        key: copy.deepcopy(value) if key in changed else getattr(experiment, key)
        for key, value in document.data.items()
    }
    lines = {}
    for name, value in params.items():
        for place in texts[name]:
            for loc in _set(data, place, value, document, name):
                lines[loc] = document.line(locations[name])
    data.pop("sweep", None)
    return data, lines


def _places(experiment: Experiment) -> dict[str, list[str]]:
    """Of each parameter of the sweep."""
    places = {} if experiment.sweep is None else experiment.sweep.parameters
    return {name: [text] if isinstance(text, str) else text for name, text in places.items()}


def _changed(document: Document, experiment: Experiment) -> set[str]:
    """The parts of the file that its sweep changes."""
    assert isinstance(document.data, dict)
    heads = {text.partition(".")[0] for texts in _places(experiment).values() for text in texts}
    return {key for key in document.data if key in heads or "*" in heads}


def changed_values(document: Document, experiment: Experiment) -> int:
    """How many single values those parts have, all of which are read anew in each combination."""
    assert isinstance(document.data, dict)
    return sum(_values(document.data[key]) for key in _changed(document, experiment))


def _values(node: Any) -> int:
    parts = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return 1 + sum(map(_values, parts))


def _set(data: dict[str, Any], place: str, value: Scalar, document: Document, name: str) -> list[Loc]:
    """Set every place that a dotted path with `*` names; returns them."""
    if place in OF_ALL_RUNS:
        line = document.line(("sweep", "parameters", name))
        message = f"{place} is the same for all runs of a file; write a file for each {place}, and a claim with `same`"
        raise SpecError([Problem(document.file, line, f"sweep.parameters.{name}", message)])
    parts = place.split(".")
    steps: list[tuple[Any, Loc]] = [(data, ())]
    for part in parts[:-1]:
        steps = [step for node, loc in steps for step in _steps(node, part, loc)]
    changed = []
    for node, loc in steps:
        for key in _keys(node, parts[-1], last=True):
            node[key] = value
            changed.append((*loc, key))
    if not changed:
        line = document.line(("sweep", "parameters", name))
        message = f"{place}: there is no such place in the experiment; a path looks like flows.*.cca or topology.params.buffer"
        raise SpecError([Problem(document.file, line, f"sweep.parameters.{name}", message)])
    return changed


def _steps(node: Any, part: str, loc: Loc) -> list[tuple[Any, Loc]]:
    return [(node[key], (*loc, key)) for key in _keys(node, part, last=False)]


def _keys(node: Any, part: str, last: bool) -> list[Any]:
    if isinstance(node, list):
        if part == "*":
            return list(range(len(node)))
        return [int(part)] if part.isdigit() and int(part) < len(node) else []
    if isinstance(node, dict):
        if part == "*":
            return list(node)
        return [part] if last or part in node else []
    return []
