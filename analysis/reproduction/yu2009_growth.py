# SPDX-License-Identifier: Apache-2.0
"""Yu 2009 s4.6.3: the windows of the cross traffic over the whole path when the connection in question begins, at 500 s."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analysis import records
from analysis.arrays import np
from analysis.models.checks import Check
from analysis.reproduction.measured import compares
from analysis.reproduction.yu2009_table import reaches
from analysis.results import Run
from analysis.statistics import estimate
from analysis.table import number
from schema.catalogue import Entry

CROSS = ("x1", "x2", "x3", "x4", "x5")
AT_S = 500.0
CLOSE = 0.1
"""How far a mean may be from the printed one where its interval does not reach it: ours."""


def mean_window(run: Run, at_s: float = AT_S) -> float | None:
    """Mean of the last windows of CROSS until `at_s` of the run, packets; None where one of them has none."""
    parts = records.collect(run.path / "records" / "sockets.parquet", ["flow"], ["t_s", "cwnd_packets"])
    last: dict[str, float] = {}
    for (flow,), columns in parts.items():
        until = int(np.searchsorted(columns["t_s"], at_s, side="right"))
        if until:
            last[flow] = float(columns["cwnd_packets"][until - 1])
    if not set(CROSS) <= last.keys():
        return None
    return sum(last[flow] for flow in CROSS) / len(CROSS)


@compares("yu2009-claim4.6.3", "yu2009-fig4_34-4_35-whole", "numbers")
def _windows(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    """By seed: until 500 s the runs of all algorithms are the same run, so one of them speaks for all."""
    numbers = entry.published.numbers
    assert isinstance(numbers, Sequence)
    for rate, printed in numbers[0]["rows"]:
        of_seed = {run.seed: run for run in runs if run.counted and run.params.get("rate") == f"{rate}mbit"}
        sample = [mean for run in of_seed.values() if (mean := mean_window(run)) is not None]
        found = estimate(sample)
        if found is None or found.t_interval is None:
            continue
        low, high = found.t_interval.low, found.t_interval.high
        holds = reaches(low, high, printed, CLOSE)
        shown = f"{number(found.mean)} ± {number(found.mean - low)} ({len(sample)} seeds)"
        words = f"mean window at 500 s of the five connections over the whole path, {rate} Mbit/s"
        yield Check("numbers", words, holds, printed, shown, "value", "10 % (ours), or the interval reaches it")
