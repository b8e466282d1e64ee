# SPDX-License-Identifier: Apache-2.0
"""Afifi 2014: what of a run its figures and definitions are held against."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from analysis import records
from analysis.arrays import np
from analysis.models.checks import Check, relation
from analysis.results import Run
from analysis.statistics import estimate

Trace = list[tuple[float, float]]
"""(s, value)"""
CLOSE = 0.10
"""How far apart "alike" and "about" may be: ours."""
STEADY_S = 5.0
"""Start-up and its first recovery are over."""
PACKET_BYTES = 536
MOST = 8
"""Of eleven algorithms: "most" (catalogue)."""


def of(runs: Sequence[Run], **params: str) -> list[Run]:
    """The runs that count with these parameters."""
    return [run for run in runs if run.counted and all(str(run.params.get(k)) == v for k, v in params.items())]


def mean(runs: Sequence[Run], metric: str, part: str = "") -> float | None:
    """Over the runs that have it."""
    found = [run.metrics.get(metric) for run in runs]
    numbers = [one.get(part) if isinstance(one, Mapping) else one for one in found]
    known = estimate([float(number) for number in numbers if isinstance(number, int | float)])
    return known.mean if known else None


def series(run: Run, file: str, column: str, flow: str = "f1") -> Trace:
    """A column of a flow's records over time, without its gaps."""
    columns = records.collect(run.path / "records" / file, ["flow"], ["t_s", column]).get((flow,))
    if columns is None:
        return []
    return [(float(t), float(v)) for t, v in zip(columns["t_s"], columns[column], strict=True) if not np.isnan(v)]


def rounds(run: Run) -> list[tuple[float, float, float]]:
    """(s, window, threshold) at the beginning of each round trip: when all that was sent at the last one's is acknowledged."""
    names = ["t_s", "cwnd_packets", "ssthresh_packets", "snd_nxt", "snd_una"]
    columns = next(iter(records.collect(run.path / "records" / "sockets.parquet", ["flow"], names).values()))
    found, end = [], -1.0
    for t, cwnd, ssthresh, nxt, una in zip(*(columns[name] for name in names), strict=True):
        if una >= end:
            found.append((float(t), float(cwnd), float(ssthresh)))
            end = float(nxt)
    return found


def spread(values: Sequence[float]) -> float:
    return float(np.std(values)) if values else float("nan")


def deviations(runs: Sequence[Run], start_s: float = 0.0, end_s: float = float("inf")) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for run in runs:
        if run.counted:
            rtts = [v / 1e3 for t, v in series(run, "acks.parquet", "rtt_us") if start_s <= t < end_s]
            found.setdefault(str(run.params.get("cca")), []).append(spread(rtts))
    return {cca: float(np.mean(values)) for cca, values in found.items()}


def order_of(part: str, words: str, values: Mapping[str, float], order: Sequence[str]) -> Check:
    """The greatest first."""
    listed = [values.get(name, float("nan")) for name in order]
    holds = all(a > b for a, b in itertools.pairwise(listed))
    return relation(
        part, f"{words}: {' > '.join(order)}", holds, {name: f"{values.get(name, float('nan')):.3g}" for name in order}
    )
