# SPDX-License-Identifier: Apache-2.0
"""Read an experiment's result folders: every run, whole or not, in a steady order."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analysis.errors import ResultsError

FORMAT = 1


@dataclass(frozen=True)
class Reason:
    rule: str
    severity: str
    message: str


@dataclass(frozen=True)
class Run:
    """One run folder. A folder without a readable run.json is a run of status "unreadable" that says why."""

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
    environment: Mapping[str, Any] = field(default_factory=dict)
    timing: Mapping[str, Any] = field(default_factory=dict)

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
        data = json.loads(text)
    except ValueError as error:
        raise ResultsError(f"{path / 'run.json'}: not JSON ({error}); delete the folder and run the experiment again") from error
    if not isinstance(data, dict):
        raise ResultsError(f"{path / 'run.json'}: holds {type(data).__name__}, not an object; delete the folder and run again")
    if data.get("format") != FORMAT:
        raise ResultsError(
            f"{path / 'run.json'}: result format {data.get('format')!r}, this program reads {FORMAT}; "
            "collect and measure the run again from its raw/ with the current version"
        )
    verdict = _mapping(data.get("verdict"))
    reasons = tuple(
        Reason(str(row.get("rule", "")), str(row.get("severity", "")), str(row.get("message", "")))
        for row in verdict.get("reasons") or ()
        if isinstance(row, dict)
    )
    return Run(
        experiment=str(data.get("experiment") or path.parent.name),
        run=str(data.get("run") or path.name),
        path=path,
        seed=data.get("seed"),
        params=_mapping(data.get("params")),
        host=str(data.get("host") or ""),
        status=str(data.get("status") or "unreadable"),
        error=str(data.get("error") or ""),
        verdict=str(verdict.get("value") or ""),
        reasons=reasons,
        metrics=_mapping(data.get("metrics")),
        spec=_mapping(data.get("spec")),
        environment=_mapping(data.get("environment")),
        timing=_mapping(data.get("timing")),
    )


def load_run(path: Path) -> Run:
    """A run from its folder; what is wrong with the folder becomes the run's error."""
    try:
        return parse_run((path / "run.json").read_text(encoding="utf-8"), path)
    except FileNotFoundError:
        error = "no run.json: the run was cut off; run the experiment again to complete it"
    except (OSError, UnicodeDecodeError) as problem:
        error = f"run.json cannot be read: {problem}"
    except ResultsError as problem:
        error = str(problem)
    return Run(experiment=path.parent.name, run=path.name, path=path, error=error)


def load_experiment(folder: Path) -> tuple[Run, ...]:
    """Every run of results/<experiment>, ordered as the sweep and then by seed; hidden and half-written names are left out."""
    if not folder.is_dir():
        raise ResultsError(f"{folder}: no such folder; run the experiment first (./warpbed run)")
    runs = [load_run(path) for path in sorted(folder.iterdir()) if path.is_dir() and not path.name.startswith(".")]
    return tuple(sorted(runs, key=_order))


def parameters(runs: tuple[Run, ...]) -> tuple[str, ...]:
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
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return float(value)
    text = str(value).strip()
    cut = len(text)
    while cut and not (text[cut - 1].isdigit() or text[cut - 1] == "."):
        cut -= 1
    unit = text[cut:].strip()
    if unit not in UNITS:
        return None
    try:
        return float(text[:cut]) * UNITS[unit]
    except ValueError:
        return None


# Units as experiment files write them, to base units: seconds, bit/s, bytes, packets, ratio.
UNITS: Mapping[str, float] = {
    "": 1.0, "p": 1.0, "%": 0.01, "B": 1.0, "KB": 1e3, "KiB": 1024.0, "MB": 1e6, "MiB": 2.0**20, "GB": 1e9, "GiB": 2.0**30,
    "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0,
    "bit": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9,
}  # fmt: skip


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _order(run: Run) -> tuple[Any, ...]:
    keys = []
    for value in run.params.values():
        number = quantity(value)
        keys.append((0, number, "") if number is not None else (1, 0.0, show(value)))
    return (not run.complete and not run.params, tuple(keys), run.seed if isinstance(run.seed, int) else -1, run.run)
