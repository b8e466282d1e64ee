# SPDX-License-Identifier: Apache-2.0
"""The cells of a sweep as rows: each metric's mean with its confidence intervals, or what changes from one cell to another."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from analysis.errors import AnalysisError
from analysis.metrics import REGISTRY
from analysis.results import Run, parameters, show
from analysis.statistics import Cell, Estimate, cells, paired
from analysis.table import number
from base.text import clean, json_text, safe

ESTIMATE_FIELDS = ("n", "mean", "t_low", "t_high", "bootstrap_low", "bootstrap_high")
COLUMNS = (*ESTIMATE_FIELDS, "copies")


def rows(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """{params, metric, unit, n, mean, t_low, t_high, bootstrap_low, bootstrap_high, copies} per cell and metric that is a number.

    The intervals hold 95 %; they are null for one observation, which says nothing of spread. copies: runs that are one
    observation, since their seeds changed nothing; 0 where runs differ.
    """
    return [
        {
            "params": dict(cell.params),
            "metric": metric.name,
            "unit": metric.unit,
            **_estimate(estimate),
            "copies": cell.copies,
        }
        for cell in cells(runs)
        for metric in REGISTRY.values()
        if not metric.keyed and (estimate := cell.estimate(metric.name)) is not None
    ]


def paired_rows(runs: Sequence[Run], parameter: str, before: str, after: str) -> list[dict[str, Any]]:
    """What changes from `parameter`=before to =after at equal seeds and equal other parameters, as `rows`, with the seeds.

    `differs`: the t interval of the difference does not hold 0. Raises AnalysisError for a parameter or value that no
    run has.
    """
    names = parameters(runs)
    if parameter not in names:
        raise AnalysisError(f"no run has a parameter {parameter!r}; there are {', '.join(names) or 'none'}")
    all_cells = cells(runs)
    values = list(dict.fromkeys(show(cell.params.get(parameter)) for cell in all_cells))
    for value in (before, after):
        if value not in values:
            raise AnalysisError(f"no run has {parameter}={value}; there are {', '.join(values)}")
    partners = {_place(cell, parameter): cell for cell in all_cells if show(cell.params.get(parameter)) == after}
    changes: list[dict[str, Any]] = []
    for cell in all_cells:
        partner = partners.get(_place(cell, parameter))
        if show(cell.params.get(parameter)) != before or partner is None:
            continue
        rest = {name: value for name, value in cell.params.items() if name != parameter}
        for metric in REGISTRY.values():
            change = None if metric.keyed else paired(cell, partner, metric.name)
            if change is None:
                continue
            interval = change.difference.t_interval
            changes.append({
                "params": {**rest, parameter: f"{before} → {after}"}, "metric": metric.name, "unit": metric.unit,
                **_estimate(change.difference), "copies": min(cell.copies, partner.copies), "seeds": list(change.seeds),
                "differs": None if interval is None else not interval.low <= 0 <= interval.high,
            })  # fmt: skip
    return changes


def _spread(low: float | None, high: float | None) -> str:
    """± 0 would say that the mean is known for certain, where values are bounded (a full buffer, no marks) or happen to be equal."""
    if low is None or high is None:
        return "(one observation)"
    return "(equal in each)" if high == low else f"± {number((high - low) / 2)}"


def _count(row: Mapping[str, Any]) -> str:
    return f"n={row['n']}" + (f" ({row['copies']} identical runs)" if row.get("copies") else "")


def _place(cell: Cell, parameter: str) -> tuple[tuple[str, str], ...]:
    """The other parameters."""
    return tuple((name, show(value)) for name, value in sorted(cell.params.items()) if name != parameter)


def _estimate(estimate: Estimate) -> dict[str, Any]:
    t, bootstrap = estimate.t_interval, estimate.bootstrap_interval
    return {
        "n": estimate.n,
        "mean": estimate.mean,
        "t_low": t.low if t else None,
        "t_high": t.high if t else None,
        "bootstrap_low": bootstrap.low if bootstrap else None,
        "bootstrap_high": bootstrap.high if bootstrap else None,
    }


def as_json(rows: Sequence[Mapping[str, Any]]) -> str:
    return json_text(list(rows)) + "\n"


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """One row each; parameters as `param.<name>`."""
    names = list(dict.fromkeys(name for row in rows for name in row["params"]))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*(safe(f"param.{name}") for name in names), "metric", "unit", *COLUMNS])
    for row in rows:
        params = [safe(show(row["params"][name])) if name in row["params"] else "" for name in names]
        writer.writerow([*params, row["metric"], row["unit"], *(row[field] for field in COLUMNS)])
    return out.getvalue()


def render(rows: Sequence[Mapping[str, Any]], nothing: str = "no run is complete and valid") -> str:
    """A table for the terminal: the mean and half the width of its t interval, or in words why it has none.

    nothing: why there are no rows
    """
    if not rows:
        return f"no numbers: {nothing}\n"
    lines = []
    for row in rows:
        where = clean(", ".join(f"{name}={show(value)}" for name, value in row["params"].items())) or "all runs"
        spread = _spread(row["t_low"], row["t_high"])
        mark = "" if not row.get("differs") else "differs"
        lines.append((where, row["metric"], number(row["mean"]), spread, row["unit"], _count(row), mark))
    widths = [max(len(line[i]) for line in lines) for i in range(7)]
    return "".join(
        "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() + "\n" for line in lines
    )
