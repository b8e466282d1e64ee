# SPDX-License-Identifier: Apache-2.0
"""The runs that the pages were made from, kept beside the pages: one file per thesis.

A claim is decided from them as from a results folder, so the pages of a thesis can grow entry by entry, on machines that do not have
each other's runs. What needs a run's records (a window over time) cannot be made again from them: of such comparisons the checks are
kept, of such figures the file.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analysis.errors import ResultsError
from analysis.metrics import lookup
from analysis.models.checks import Check
from analysis.results import Run
from base.cache import digest
from schema.model import Experiment

NOWHERE = Path("recorded")
"""In place of the folder of a run of which only the metrics are there."""
WHOLE = "recorded"
"""A metric of our own: the digest of all metrics of the run, so that runs which differ in others do not pass for copies."""


@dataclass(frozen=True)
class Recorded:
    """Of one experiment file: its runs, and what comparisons with a model came to (entry → checks)."""

    runs: tuple[Run, ...] = ()
    checks: Mapping[str, tuple[Check, ...]] = field(default_factory=dict)


def file_of(folder: Path, thesis: str) -> Path:
    return folder / f"{thesis}.json"


def read(folder: Path, thesis: str) -> dict[str, Recorded]:
    """Experiment file → what is recorded of it; nothing without a record.

    Raises ResultsError where the file is not one of ours.
    """
    file = file_of(folder, thesis)
    if not file.exists():
        return {}
    try:
        rows = json.loads(file.read_text(encoding="utf-8"))
        return {
            name: Recorded(
                tuple(_run(one) for one in row["runs"]),
                {entry: tuple(Check(**check) for check in checks) for entry, checks in row.get("checks", {}).items()},
            )
            for name, row in rows.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ResultsError(
            f"{file}: not a record of a thesis' runs ({error}); `./warpbed reproduce --pages` writes it"
        ) from error


def text(experiments: Mapping[str, tuple[Experiment, Recorded]]) -> str:
    """The record's content: a line per run, so that a change of one run is a change of one line."""
    blocks = []
    for name, (experiment, recorded) in sorted(experiments.items()):
        wanted = metrics_of(experiment)
        runs = sorted((_row(run, wanted) for run in recorded.runs if run.complete), key=lambda row: str(row["run"]))
        lines = ",\n".join(f"   {_line(row)}" for row in runs)
        checks = {entry: [_check(check) for check in recorded.checks[entry]] for entry in recorded.checks}
        shown = "" if not checks else f',\n  "checks": {_line(checks)}'
        blocks.append(f' {json.dumps(name)}: {{\n  "runs": [\n{lines}\n  ]{shown}\n }}')
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def _check(check: Check) -> dict[str, Any]:
    return {key: value for key, value in dataclasses.asdict(check).items() if key != "explains" or value}


def metrics_of(experiment: Experiment) -> tuple[str, ...]:
    """The metrics that an experiment's tables, claims and published values name."""
    named = [name for one in experiment.claims for name in one.metrics]
    return tuple(dict.fromkeys([*experiment.metrics, *named, *(one.metric for one in experiment.published)]))


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _row(run: Run, wanted: Sequence[str]) -> dict[str, Any]:
    metrics = dict(run.metrics)
    return {
        "run": run.run,
        "experiment": run.experiment,
        "host": run.host,
        "seed": run.seed,
        "params": dict(run.params),
        "verdict": run.verdict,
        "packets": run.packets,
        "spec": run.inputs.get("spec", ""),
        "traces": run.inputs.get("traces", {}),
        "whole": metrics.get(WHOLE) or digest(metrics)[:16],
        "metrics": {name: value for name in wanted if (value := lookup(metrics, name)) is not None},
    }


def _run(row: Mapping[str, Any]) -> Run:
    metrics: dict[str, Any] = {WHOLE: row["whole"]}
    for name, value in row["metrics"].items():
        head, _, part = name.partition(".")
        if not part:
            metrics[head] = value
        elif head == "flows":
            flow, _, key = part.rpartition(".")
            rows = metrics.setdefault(head, [])
            known = next((one for one in rows if one["flow"] == flow), None)
            if known is None:
                rows.append(known := {"flow": flow})
            known[key] = value
        else:
            metrics.setdefault(head, {})[part] = value
    return Run(
        str(row["experiment"]),
        str(row["run"]),
        NOWHERE,
        seed=row["seed"],
        params=row["params"],
        host=row["host"],
        status="complete",
        verdict=row["verdict"],
        metrics=metrics,
        packets=row["packets"],
        inputs={"spec": row["spec"], "traces": row["traces"]},
    )
