# SPDX-License-Identifier: Apache-2.0
"""Tokuda 2003, Figs 2 and 9: what the ten Reno hosts have together, which no metric by algorithm says where the fast host uses Reno too."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from analysis import records
from analysis.arrays import np
from analysis.models.checks import Check
from analysis.reproduction.intervals import within
from analysis.reproduction.measured import compares
from analysis.results import Run
from base.quantities import seconds
from schema.catalogue import Entry

SHORT = "tokuda2003-fig2-9-10-short"
FAST = "fast"
"""The host whose algorithm is changed; each of the others has one Reno flow."""


def slow_mbps(run: Run) -> float | None:
    """Of all flows but the fast host's, after the experiment's warmup: slow start takes 5 s (s3)."""
    warmup_s = seconds(str(run.spec["warmup"]))
    parts = records.collect(run.path / "records" / "intervals.parquet", ["flow"], ["t_s", "delivered_bytes"])
    total = 0.0
    for (flow,), columns in parts.items():
        t_s, delivered = np.asarray(columns["t_s"], dtype=float), np.asarray(columns["delivered_bytes"], dtype=float)
        steady = t_s > warmup_s  # a row is what came since the one before
        if flow != FAST and steady.any():
            total += float(np.nansum(delivered[steady])) * 8e-6 / (float(t_s.max()) - warmup_s)
    return total or None


def more(runs: Sequence[Run], cca: str, other: str) -> list[float]:
    """Of each seed, the Reno hosts' total where the fast host uses one algorithm less that where it uses another."""
    totals = {(str(run.params.get("cca")), run.seed): slow_mbps(run) for run in runs if run.counted}
    pairs = [(total, totals.get((other, seed))) for (name, seed), total in totals.items() if name == cca]
    return [first - second for first, second in pairs if first is not None and second is not None]


def _less_beside(part: str, cca: str, other: str, says: str) -> Callable[[Entry, Sequence[Run]], Iterator[Check]]:
    def compare(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
        sample = more(runs, cca, other)
        if sample:
            yield within(part, f"{says}: above 0", sample, math.nextafter(0.0, 1.0), math.inf)

    return compare


for _entry, _part in (("fig2", "2"), ("s3-summary", "3")):
    compares(f"tokuda2003-{_entry}", SHORT, _part)(
        _less_beside(
            _part, "reno", "highspeed", "total of the Reno hosts beside Reno less that beside HighSpeed, Mbit/s"
        )
    )
for _entry, _part in (("fig9", "2"), ("s5.2-summary", "2"), ("abstract-30-percent", "2")):
    compares(f"tokuda2003-{_entry}", SHORT, _part)(
        _less_beside(
            _part,
            "ghighspeed",
            "highspeed",
            "total of the Reno hosts beside Gentle HighSpeed less that beside HighSpeed, Mbit/s",
        )
    )
