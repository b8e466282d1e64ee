# SPDX-License-Identifier: Apache-2.0
"""Why a table of the report has no number in a place: told in the place itself, and once below the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from analysis.metrics import Metric
from analysis.metrics.absence import why
from analysis.results import Run
from analysis.statistics import Cell, is_number

Place = TypeVar("Place", Run, Cell)


def of_run(run: Run, metric: Metric) -> str:
    """Why a run has no number of a metric, "" where it has one."""
    if is_number(run.metrics.get(metric.name)):
        return ""
    return why(metric.name, run.sources) if run.complete else unknown(run)


def of_cell(cell: Cell, metric: Metric) -> str:
    """Why a cell has no mean of a metric, "" where it has one."""
    if cell.values(metric.name):
        return ""
    if not cell.counted:
        return "no run of these is complete and valid"
    return why(metric.name, cell.counted[0].sources)


def unknown(run: Run) -> str:
    """Why nothing is known of a run."""
    return f"the run is {run.standing}" + (f": {run.error.splitlines()[0]}" if run.error else "")


def notes(
    metrics: Sequence[Metric], reason: Callable[[Place, Metric], str], places: Iterable[Place]
) -> tuple[tuple[str, str], ...]:
    """(metric's label, reason) of all that a table lacks, each once."""
    listed = list(places)
    return tuple(
        dict.fromkeys((metric.label, text) for metric in metrics for place in listed if (text := reason(place, metric)))
    )
