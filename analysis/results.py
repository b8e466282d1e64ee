# SPDX-License-Identifier: Apache-2.0
"""Read an experiment's result folders: every run, whole or not, in a steady order."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analysis.errors import ResultsError
from analysis.run_shape import problem, without_constants
from base.quantities import BYTE_UNITS, RATE_UNITS, TIME_UNITS_NS
from base.small_files import parsed, small_text

FORMAT = 1
FIGURES = "figures"
"""Beside the runs: the report's figures as files (analysis.report)."""
FAILED = ".failed-"  # testbed.results names the folders of failed attempts <run>.failed-<n>


@dataclass(frozen=True)
class Reason:
    """Why a run is suspect ("warning") or invalid ("error"): a rule of the verdict, and what it saw."""

    rule: str
    severity: str
    message: str


@dataclass(frozen=True)
class Run:
    """One run folder. A folder without a readable run.json is a run of status "unreadable" that says why.

    status: "complete", "failed", "unreadable", or "missing" where a run of the sweep has no folder yet
    packets: SHA-256 over the captures, of hosts on which the same run has the same ones
    sources: by flow, which record each quantity comes from (analysis.metrics.needs)
    """

    experiment: str
    run: str
    path: Path
    seed: int | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    host: str = ""
    status: str = "unreadable"
    error: str = ""
    verdict: str = ""
    reasons: tuple[Reason, ...] = ()
    metrics: Mapping[str, Any] = field(default_factory=dict)
    spec: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    timing: Mapping[str, Any] = field(default_factory=dict)
    packets: str = ""
    sources: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        return self.status == "complete"

    @property
    def counted(self) -> bool:
        """Whether its numbers enter means and claims: complete, and not judged invalid."""
        return self.complete and self.verdict != "invalid"

    @property
    def standing(self) -> str:
        """What a reader has to know of it in one word: its verdict, or why it has none."""
        return (self.verdict or "no verdict") if self.complete else self.status


def parse_run(text: str, path: Path) -> Run:
    """A run from the text of its run.json."""
    try:
        data = parsed(text, without_constants)
    except ValueError as error:
        raise ResultsError(
            f"{path / 'run.json'}: not JSON ({error}); delete the folder and run the experiment again"
        ) from error
    if not isinstance(data, dict):
        raise ResultsError(
            f"{path / 'run.json'}: holds {type(data).__name__}, not an object; delete the folder and run again"
        )
    if data.get("format") != FORMAT:
        raise ResultsError(f"{path / 'run.json'}: {other_format(data.get('format'))}")
    if (wrong := problem(data)) is not None:
        raise ResultsError(
            f"{path / 'run.json'}: {wrong}; not written by this Warpbed; delete the folder and run again"
        )
    verdict = _mapping(data.get("verdict"))
    reasons = tuple(
        Reason(str(row.get("rule", "")), str(row.get("severity", "")), str(row.get("message", "")))
        for row in verdict.get("reasons") or ()
        if isinstance(row, dict)
    )
    experiment, run = identity(path)
    return Run(
        experiment=experiment,
        run=run,
        path=path,
        seed=data.get("seed"),
        params=_mapping(data.get("params")),
        host=str(data.get("host") or ""),
        status=str(data.get("status") or "unreadable"),
        error=_error(data.get("error")),
        verdict=str(verdict.get("value") or ""),
        reasons=reasons,
        metrics=_mapping(data.get("metrics")),
        spec=_mapping(data.get("spec")),
        inputs=_mapping(data.get("inputs")),
        environment=_mapping(data.get("environment")),
        timing=_mapping(data.get("timing")),
        packets=str(data.get("packets") or ""),
        sources=_mapping(data.get("sources")),
    )


def identity(path: Path) -> tuple[str, str]:
    """Experiment and run, by the folder that holds them: what a file says of itself may be another's name."""
    whole = Path(os.path.abspath(path))
    return whole.parent.name, whole.name.partition(FAILED)[0]


def other_format(version: Any) -> str:
    """What to do about a run.json of another format than this program's."""
    message = f"result format {version!r}, this Warpbed reads {FORMAT}"
    if isinstance(version, int) and version > FORMAT:
        return f"{message}: a newer Warpbed made it; update this checkout"
    return f"{message}: not written by any Warpbed; delete the folder and run the experiment again (./warpbed run)"


def load_run(path: Path) -> Run:
    """A run from its folder; what is wrong with the folder becomes the run's error."""
    try:
        return parse_run(small_text(path / "run.json"), path)
    except FileNotFoundError:
        error = "no run.json: the run was cut off; run the experiment again to complete it"
    except (OSError, UnicodeDecodeError) as problem:
        error = f"run.json cannot be read: {problem}"
    except ResultsError as problem:
        error = str(problem)
    experiment, run = identity(path)
    return Run(experiment=experiment, run=run, path=path, error=error)


def load_experiment(folder: Path, names: Sequence[str] | None = None) -> tuple[Run, ...]:
    """The runs of results/<experiment>: each once, as its complete folder or else as its last failed attempt.

    names: the runs that belong to the experiment and their order (those of the experiment file's sweep); one
    without a folder is told as missing. By default every run of the folder, ordered by parameters and seed.
    """
    runs: dict[str, Run] = {}
    for run in _load_all(folder):
        if run.run not in runs or run.path.name == run.run or not _is_whole(runs[run.run]):
            runs[run.run] = run
    if names is None:
        return tuple(sorted(runs.values(), key=_order))
    missing = {name: Run(folder.name, name, folder / name, status="missing", error="not run yet") for name in names}
    return tuple(runs.get(name, missing[name]) for name in names)


def earlier_attempts(folder: Path) -> tuple[Run, ...]:
    """Failed attempts at runs that were tried again since."""
    current = {run.path for run in load_experiment(folder)}
    return tuple(run for run in _load_all(folder) if run.path not in current)


def _load_all(folder: Path) -> list[Run]:
    if not folder.is_dir():
        raise ResultsError(f"{folder}: no such folder; run the experiment first (./warpbed run)")
    paths = [
        path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".") and path.name != FIGURES
    ]
    return [load_run(path) for path in sorted(paths, key=_attempt)]


def _attempt(path: Path) -> tuple[str, int]:
    name, _, number = path.name.partition(FAILED)
    return name, int(number) if number.isdigit() else 0


def _is_whole(run: Run) -> bool:
    return FAILED not in run.path.name and run.status != "unreadable"


def parameters(runs: Sequence[Run]) -> tuple[str, ...]:
    """Names of the sweep's parameters, in the order in which the runs give them."""
    names: dict[str, None] = {}
    for run in runs:
        names.update(dict.fromkeys(run.params))
    return tuple(names)


def show(value: Any) -> str:
    """A parameter's value as a reader writes it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)


def quantity(value: Any) -> float | None:
    """The number in a parameter's value ("50p", "48ms", "10mbit", 0.02), in base units; None for a word."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    match = _QUANTITY.fullmatch(value.strip()) if isinstance(value, str) else None
    return float(match[1]) * UNITS[match[2]] if match and match[2] in UNITS else None


_QUANTITY = re.compile(r"(-?[0-9]+(?:\.[0-9]+)?)\s*([A-Za-z%]*)")
UNITS: Mapping[str, float] = {
    "": 1.0,
    "p": 1.0,
    "%": 0.01,
    **BYTE_UNITS,
    **RATE_UNITS,
    **{unit: size_ns / 1e9 for unit, size_ns in TIME_UNITS_NS.items()},
}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _error(value: Any) -> str:
    """A failure as one text: the runner writes {stage, subject, detail}."""
    if isinstance(value, dict):
        head = " ".join(str(value[name]) for name in ("stage", "subject") if value.get(name))
        return ": ".join(part for part in (head, str(value.get("detail") or "")) if part)
    return str(value or "")


def _order(run: Run) -> tuple[Any, ...]:
    keys = []
    for value in run.params.values():
        number = quantity(value)
        keys.append((0, number, "") if number is not None else (1, 0.0, show(value)))
    return (not run.params, tuple(keys), run.seed if isinstance(run.seed, int) else -1, run.run)
