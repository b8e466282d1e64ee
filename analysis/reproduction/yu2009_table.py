# SPDX-License-Identifier: Apache-2.0
"""Yu 2009 Table 4-1: means and standard deviations of the estimated thresholds, cell by cell.

The thesis has 100 samples of each, here each start is one. ERE's cells are left to the claim that it stays below 32: the table has raw
estimates, and one below the first threshold of 32 leaves that as it is, so that no socket shows it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from analysis.arrays import np
from analysis.models.checks import Check
from analysis.reproduction.measured import compares
from analysis.results import Run
from analysis.statistics import estimate
from analysis.table import number
from schema.catalogue import Entry

METRIC, FLOW = "slow_start_ssthresh_packets", "f"
COLUMNS = {"astart_bwe": "BWE", "spm": "SPM", "hoe": "Hoe", "past": "PaSt"}
SHARE = 0.3
"""How far a mean or a deviation may be from the printed one: ours."""
Z = 1.96
"""Of a 95 % interval."""


def deviation(sample: Sequence[float]) -> tuple[float, float, float] | None:
    """(standard deviation, its 95 % interval) of a normal sample, with the quantiles of chi-square by Wilson and Hilferty."""
    free = len(sample) - 1
    if free < 1:
        return None
    found = float(np.std(sample, ddof=1))
    low, high = (free * max(1 - 2 / (9 * free) + z * math.sqrt(2 / (9 * free)), 0.0) ** 3 for z in (-Z, Z))
    return found, found * math.sqrt(free / high), found * math.sqrt(free / low) if low else math.inf


def samples(runs: Sequence[Run]) -> dict[tuple[str, float], list[float]]:
    """(algorithm, Mbit/s) → estimates of the runs that count."""
    found: dict[tuple[str, float], list[float]] = {}
    for run in runs:
        values = run.metrics.get(METRIC)
        value = values.get(FLOW) if isinstance(values, Mapping) else None
        if run.counted and isinstance(value, int | float):
            rate = float(str(run.params["rate"]).removesuffix("mbit"))
            found.setdefault((str(run.params["cca"]), rate), []).append(float(value))
    return found


def reaches(low: float, high: float, printed: float, share: float = SHARE) -> bool:
    """Whether an interval comes as near to a printed value as this share of it."""
    return low <= printed * (1 + share) and high >= printed * (1 - share)


@compares(
    "yu2009-tab4.1",
    ("yu2009-fig4_34-4_35-whole", "yu2009-fig4_36-short", "yu2009-fig4_37-4_38-short"),
    "numbers",
    by_metrics=True,
)
def _table(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    numbers = entry.published.numbers
    assert isinstance(numbers, Sequence)
    columns, known = numbers[0]["columns"], samples(runs)
    for row in numbers[0]["rows"]:
        printed = dict(zip(columns, row, strict=True))
        rate = float(printed["Bandwidth_mbps"])
        for cca, name in COLUMNS.items():
            yield from _cell(f"{name} at {rate:.0f} Mbit/s", known.get((cca, rate), []), *(
                float(printed[f"{name}_{part}"]) for part in ("avg", "dev")
            ))  # fmt: skip


def _cell(where: str, sample: Sequence[float], mean: float, spread: float) -> Iterator[Check]:
    found, apart = estimate(sample), deviation(sample)
    if found is None or found.t_interval is None or apart is None:
        return
    low, high = found.t_interval.low, found.t_interval.high
    shown = f"{number(found.mean)} ± {number(found.mean - low)} ({len(sample)} starts)"
    width = f"30 % (ours), or the interval reaches it; {len(sample)} starts of 100"
    yield Check("numbers", f"mean estimate of {where}", reaches(low, high, mean), mean, shown, "value", width)
    shown = f"{number(apart[0])} ({number(apart[1])} to {number(apart[2])})"
    holds = reaches(apart[1], apart[2], spread)
    yield Check("numbers", f"deviation of {where}", holds, spread, shown, "value", width)
