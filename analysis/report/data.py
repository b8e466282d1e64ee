# SPDX-License-Identifier: Apache-2.0
"""The data for the page's script: series, distributions and cells, as plain JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from analysis import palette
from analysis.errors import AnalysisError
from analysis.metrics import REGISTRY
from analysis.report import applications, flows, series
from analysis.results import Run, parameters, quantity, show
from analysis.statistics import Cell, is_number

# The metrics of the tables, the most asked for first; the figures add the rest where runs have them.
TABLE_METRICS = (
    "utilization",
    "jain_index",
    "goodput_mbps",
    "queue_mean_packets",
    "queue_max_packets",
    "queue_drops",
    "rtt_mean_ms",
)


DISTRIBUTION_OF_RTT = {
    "name": series.RTT_CDF,
    "title": "Distribution of the round-trip time",
    "label": "Round-trip time, ms",
    "about": "Share of samples at or below a round-trip time.",
    "share": "Share of samples",
}


def duration_s_of(runs: Sequence[Run]) -> float:
    """The longest of the runs: all figures share one time axis."""
    durations_s = [run.timing.get("virtual_s") or quantity(run.spec.get("duration")) for run in runs]
    return max((float(value) for value in durations_s if value is not None and is_number(value)), default=0.0)


def figure_data(runs: Sequence[Run], every_cell: Sequence[Cell]) -> dict[str, Any]:
    """What the script draws."""
    drawn = [run for run in runs if run.complete]
    lines = sum(max(1, len(run.metrics.get("flows") or ())) for run in drawn)
    buckets, duration_s = series.buckets_for(lines), duration_s_of(runs)
    names = parameters(runs)
    shared = any(len(run.metrics.get("flows") or ()) > 1 for run in drawn)
    texts = {show(value): None for run in runs for value in run.params.values()}
    entries = []
    for run in drawn:
        entry: dict[str, Any] = {
            "run": run.run,
            "standing": run.standing,
            "attributes": {**{name: show(run.params.get(name)) for name in names}, "seed": show(run.seed)},
            "ccas": {str(flow.get("flow")): show(flow.get("cca")) for flow in run.metrics.get("flows") or ()},
            "series": [],
            "distributions": [],
        }
        if duration_s > 0:
            try:
                entry["series"] = series.run_series(run, buckets, duration_s)
                entry["distributions"] = [*series.run_distributions(run), *flows.flow_distributions(run)]
            except AnalysisError as error:
                entry["problem"] = str(error)
        entries.append(entry)
    scalars = [metric for metric in REGISTRY.values() if not metric.keyed]
    # What changes over the sweep comes first: a panel of equal points tells nothing.
    flat = [
        metric.name
        for metric in scalars
        if len({value for cell in every_cell for value in cell.values(metric.name)}) < 2
    ]
    asked = {name: place for place, name in enumerate(TABLE_METRICS)}
    ordered = sorted(scalars, key=lambda metric: (metric.name in flat, asked.get(metric.name, len(asked))))
    algorithms = {name for entry in entries for name in entry["ccas"].values()} | (set(texts) & set(palette.ALGORITHMS))
    return {
        "duration_s": duration_s,
        "buckets": buckets,
        "numbers": {text: value for text in texts if (value := quantity(text)) is not None},
        "figures": [
            {"name": figure.name, "title": figure.title, "unit": figure.unit, "zero": figure.from_zero,
             "about": figure.about, "second": figure.second_label}
            for figure in series.FIGURES if figure.name != series.JAIN or shared
        ],
        "distributions": [
            DISTRIBUTION_OF_RTT,
            *({"name": spread.name, "title": spread.title, "label": spread.label, "about": "",
                "share": "Share of flows"}
              for spread in flows.SPREADS),
        ],
        "shares": flows.shares(every_cell),
        "gaps": applications.gaps(runs),
        "places": {name: palette.place(name) for name in sorted(algorithms)},
        "quantiles": [round(float(value), 4) for value in series.QUANTILES],
        "runs": entries,
        "metrics": [
            {"name": metric.name, "label": metric.label, "unit": "" if metric.unit == "1" else metric.unit,
             "about": metric.description} for metric in ordered
        ],
        "cells": [
            {"attributes": {name: show(cell.params.get(name)) for name in names},
             "metrics": {metric.name: _estimate(cell, metric.name) for metric in ordered if cell.values(metric.name)}}
            for cell in every_cell
        ],
    }  # fmt: skip


def _estimate(cell: Cell, metric: str) -> dict[str, Any]:
    estimate = cell.estimate(metric)
    assert estimate is not None  # the caller has seen values
    interval = [estimate.t_interval.low, estimate.t_interval.high] if estimate.t_interval else None
    return {"mean": estimate.mean, "interval": interval, "values": cell.values(metric)}
