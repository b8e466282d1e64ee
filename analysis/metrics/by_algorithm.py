# SPDX-License-Identifier: Apache-2.0
"""Throughput and smoothness per algorithm, where several share a path."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from analysis.arrays import np
from analysis.metrics.dynamics import TIME_SCALES_S, variation
from analysis.metrics.fairness import common_window
from analysis.metrics.needs import DELIVERED, SERIES
from analysis.metrics.rates import binned_mbps, mean_mbps
from analysis.metrics.registry import metric
from analysis.metrics.run import RunRecords


def _groups(run: RunRecords) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Algorithms in order of their first flow, each with its flows."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for flow in run.tcp_flows:
        groups.setdefault(flow["cca"], []).append(dict(flow))
    yield from groups.items()


@metric(
    "algorithm_goodput_mbps",
    needs=(DELIVERED,),
    unit="Mbit/s",
    label="Goodput per flow",
    better="higher",
    keyed="algorithm",
)
def algorithm_goodput_mbps(run: RunRecords) -> dict[str, float | None]:
    """Mean goodput of one flow of each algorithm while all flows are there.

    Source: Kato 2012 s5.1.2 (normalised throughput), Afifi 2014 s8.2; intervals.delivered_bytes.
    """
    window = common_window(run)
    by_algorithm: dict[str, float | None] = {}
    for name, flows in _groups(run):
        rates = [mean_mbps(run.intervals.get(flow["flow"]), "delivered_bytes", window) or 0.0 for flow in flows]
        by_algorithm[name] = sum(rates) / len(rates) if window.length_s > 0 else None
    return by_algorithm


@metric(
    "algorithm_smoothness_cv",
    needs=(SERIES,),
    unit="1",
    label="Smoothness (CV)",
    better="lower",
    keyed="algorithm.seconds",
)
def algorithm_smoothness_cv(run: RunRecords) -> dict[str, float | None]:
    """Coefficient of variation of a flow's goodput in bins of a time scale, mean of each algorithm's flows.

    As smoothness_cv, while all flows are there; a part is named by the algorithm and the seconds, `cubic.1`.

    Source: Kato 2012 s5.1.3 (smoothness beside competing TCP); intervals.delivered_bytes.
    """
    window = common_window(run)
    by_algorithm: dict[str, float | None] = {}
    for name, flows in _groups(run):
        columns = [run.intervals[flow["flow"]] for flow in flows if flow["flow"] in run.intervals]
        for scale_s in TIME_SCALES_S:
            fine = [part for part in columns if part["width_s"].size and np.median(part["width_s"]) < scale_s * 1.001]
            values = [variation(binned_mbps(part, "delivered_bytes", window, scale_s)) for part in fine]
            known = [value for value in values if value is not None]
            by_algorithm[f"{name}.{scale_s:g}"] = sum(known) / len(known) if known else None
    return by_algorithm
