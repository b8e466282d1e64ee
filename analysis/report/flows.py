# SPDX-License-Identifier: Apache-2.0
"""Figures over all flows: how algorithms share a path, and distributions of goodput and completion time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.arrays import np
from analysis.report.series import QUANTILES
from analysis.results import Run, parameters, show
from analysis.statistics import Cell, estimate, is_number

FEWEST = 3
"""Flows of one algorithm below which a distribution says nothing."""


@dataclass(frozen=True)
class Spread:
    """A quantity of whole flows whose distribution is drawn: its field in the metric `flows`."""

    name: str
    title: str
    label: str
    field: str


SPREADS = (
    Spread("goodput-cdf", "Distribution of the flows’ goodput", "Goodput of a flow, Mbit/s", "goodput_mbps"),
    Spread("completion-cdf", "Distribution of completion times", "Completion time, s", "completion_s"),
)


def flow_distributions(run: Run) -> list[dict[str, Any]]:
    """Quantiles over a run's flows of each algorithm: {figure, flow: None, algorithm, x}."""
    distributions = []
    for spread in SPREADS:
        for algorithm, rows in _by_algorithm(run).items():
            values = [float(row[spread.field]) for row in rows if is_number(row.get(spread.field))]
            if len(values) >= FEWEST:
                quantiles = np.quantile(values, QUANTILES, method="inverted_cdf")
                distributions.append(
                    {
                        "figure": spread.name,
                        "flow": None,
                        "algorithm": algorithm,
                        "x": [float(f"{value:.5g}") for value in quantiles.tolist()],
                    }
                )
    return distributions


def shares(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """How the algorithms of each cell divide what all its flows delivered (Ho 2008 section 5.5).

    Per cell of two algorithms or more: {attributes, parts: [{algorithm, flows, fair, mean, interval}]}; shares of the
    goodput of all flows, 0 to 1; fair: the algorithm's share of the flows.
    """
    names = parameters([run for cell in cells for run in cell.runs])
    result = []
    for cell in cells:
        divided: dict[str, list[float]] = {}
        flows: dict[str, int] = {}
        for run in cell.counted:
            sums = {
                algorithm: sum(float(row["goodput_mbps"]) for row in rows if is_number(row.get("goodput_mbps")))
                for algorithm, rows in _by_algorithm(run).items()
            }
            if len(sums) < 2 or not sum(sums.values()):
                continue
            for algorithm, rows in _by_algorithm(run).items():
                divided.setdefault(algorithm, []).append(sums[algorithm] / sum(sums.values()))
                flows[algorithm] = len(rows)
        if not divided:
            continue
        parts = []
        for algorithm, values in divided.items():
            mean = estimate(values)
            assert mean is not None  # a list is made with its first value
            interval = mean.t_interval
            parts.append(
                {
                    "algorithm": algorithm,
                    "flows": flows[algorithm],
                    "fair": flows[algorithm] / sum(flows.values()),
                    "mean": mean.mean,
                    "interval": None if interval is None else [interval.low, interval.high],
                }
            )
        result.append({"attributes": {name: show(cell.params.get(name)) for name in names}, "parts": parts})
    return result


def _by_algorithm(run: Run) -> dict[str, list[Mapping[str, Any]]]:
    by_algorithm: dict[str, list[Mapping[str, Any]]] = {}
    for row in run.metrics.get("flows") or ():
        if isinstance(row, dict) and row.get("cca"):
            by_algorithm.setdefault(str(row["cca"]), []).append(row)
    return by_algorithm
