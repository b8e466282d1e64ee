# SPDX-License-Identifier: Apache-2.0
"""Measurements by the applications themselves (the metric `applications`): a table, and packet pairs' gaps for a figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.results import Run, parameters, show
from analysis.statistics import is_number
from analysis.table import number

ELSEWHERE = ("flow", "app", "cca", "src", "dst")
MOST_ROWS = 400


@dataclass(frozen=True)
class Application:
    """One traffic entry of one run; `results` are the numbers that it reports, with the field's name as its unit.

    without: fields of which it has no number
    """

    attributes: tuple[str, ...]
    seed: str
    name: str
    kind: str
    way: str
    results: tuple[tuple[str, str], ...]
    without: tuple[str, ...]


def applications(runs: Sequence[Run]) -> tuple[Application, ...]:
    """All entries of all complete runs, at most MOST_ROWS."""
    names = parameters(runs)
    listed = []
    for run, row in _rows(runs):
        numbers = [(key, value) for key, value in row.items() if key not in ELSEWHERE and is_number(value)]
        listed.append(
            Application(
                attributes=tuple(show(run.params.get(name)) for name in names),
                seed=show(run.seed),
                name=show(row.get("flow")),
                kind=show(row.get("app")),
                way=f"{show(row.get('src'))} → {show(row.get('dst'))}",
                results=tuple((key, number(value)) for key, value in numbers),
                without=tuple(key for key, value in row.items() if key not in ELSEWHERE and value is None),
            )
        )
    return tuple(listed[:MOST_ROWS])


def gaps(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Output gap against input gap of packet pairs (Yu 2009 section 4.4), ms.

    One entry per run and prober: {attributes, flow, points: [{input, output, low, high, pairs}]}, points by input gap.
    """
    names = parameters(runs)
    curves = []
    for run, row in _rows(runs):
        points = [_point(gap) for gap in row.get("gaps") or () if _is_gap(gap)]
        points.sort(key=lambda point: float(point["input"]))
        if points:
            attributes = {**{name: show(run.params.get(name)) for name in names}, "seed": show(run.seed)}
            curves.append({"attributes": attributes, "flow": show(row.get("flow")), "points": points})
    return curves


def _is_gap(gap: Any) -> bool:
    return isinstance(gap, dict) and all(is_number(gap.get(name)) for name in ("input_gap_s", "output_gap_s"))


def _point(gap: Mapping[str, Any]) -> dict[str, float]:
    mean_s = float(gap["output_gap_s"])
    low_s, high_s = (_number(gap.get(f"output_gap_{end}_s"), mean_s) for end in ("min", "max"))
    return {
        "input": gap["input_gap_s"] * 1e3,
        "output": mean_s * 1e3,
        "low": low_s * 1e3,
        "high": high_s * 1e3,
        "pairs": gap.get("pairs") or 0,
    }


def _number(value: Any, otherwise: float) -> float:
    return float(value) if is_number(value) else otherwise


def _rows(runs: Sequence[Run]) -> Iterator[tuple[Run, Mapping[str, Any]]]:
    for run in runs:
        listed = run.metrics.get("applications") if run.complete else None
        for row in listed if isinstance(listed, list) else []:
            if isinstance(row, dict):
                yield run, row
