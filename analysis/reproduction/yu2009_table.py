# SPDX-License-Identifier: Apache-2.0
"""Yu 2009 Table 4-1: means and standard deviations of the estimated thresholds, cell by cell.

The thesis has 100 samples of each, here each start is one; those of one run, 45 s apart, count as independent. Whose estimates lie further
apart is asked run by run. ERE's cells are left to the claim that it stays below 32: the table has raw estimates, and one below the first
threshold of 32 leaves that as it is, so that no socket shows it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence

from analysis.arrays import np
from analysis.models.checks import Check, Kind
from analysis.reproduction.intervals import within
from analysis.reproduction.measured import compares
from analysis.results import Run
from analysis.statistics import estimate
from analysis.table import number
from schema.catalogue import Entry

METRIC = "slow_start_ssthresh_packets"
TABLE = ("yu2009-fig4_34-4_35-whole", "yu2009-tab4_1-starts", "yu2009-fig4_36-short", "yu2009-fig4_37-4_38-short")
Start = tuple[int | None, int]
"""The seed of its run, and which start of the run it is. The first is the same in all experiments that have it."""
COLUMNS = {"astart_bwe": "BWE", "spm": "SPM", "hoe": "Hoe", "past": "PaSt"}
FAIR = {25.0: 62.8, 50.0: 218.9, 100.0: 581.5, 400.0: 2644.0}
"""Mbit/s → packets: mean window of the cross traffic at 500 s, or what fills the access link; both beside Table 4-1."""
SHARE = 0.3
"""How far a mean or a deviation may be from the printed one: ours."""
LEAST_STARTS = 5
"""Of a run, for a deviation of its own: ours."""
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


def by_start(runs: Sequence[Run]) -> dict[tuple[str, float], dict[Start, float]]:
    """(algorithm, Mbit/s) → start → estimate; of runs that count."""
    found: dict[tuple[str, float], dict[Start, float]] = {}
    for run in runs:
        values = run.metrics.get(METRIC)
        if not run.counted or not isinstance(values, Mapping):
            continue
        rate = float(str(run.params["rate"]).removesuffix("mbit"))
        for flow, value in values.items():
            if isinstance(value, int | float) and (which := re.fullmatch(r"f([0-9]*)", flow)):
                start = (run.seed, int(which[1] or 1))
                found.setdefault((str(run.params["cca"]), rate), {})[start] = float(value)
    return found


def reaches(low: float, high: float, printed: float, share: float = SHARE) -> bool:
    """Whether an interval comes as near to a printed value as this share of it."""
    return low <= printed * (1 + share) and high >= printed * (1 - share)


@compares("yu2009-tab4.1", TABLE, "numbers", "5", "7", by_metrics=True)
def _table(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    numbers = entry.published.numbers
    assert isinstance(numbers, Sequence)
    columns, starts = numbers[0]["columns"], by_start(runs)
    known = {where: list(of_start.values()) for where, of_start in starts.items()}
    for row in numbers[0]["rows"]:
        printed = dict(zip(columns, row, strict=True))
        rate = float(printed["Bandwidth_mbps"])
        for cca, name in COLUMNS.items():
            yield from _cell(f"{name} at {rate:.0f} Mbit/s", known.get((cca, rate), []), *(
                float(printed[f"{name}_{part}"]) for part in ("avg", "dev")
            ))  # fmt: skip
    yield from _crowded(known)
    for cca in ("astart_bwe", "hoe"):
        yield from _wider(starts, cca)


def _crowded(known: Mapping[tuple[str, float], Sequence[float]]) -> Iterator[Check]:
    """SPM where the path is crowded: near the fair window at 25 Mbit/s, below half of it at 50."""
    words = f"SPM's mean estimate at 25 Mbit/s beside the fair window of {number(FAIR[25.0])} packets"
    yield from _mean(
        "5", words, known.get(("spm", 25.0), []), FAIR[25.0], "order", "30 % (ours), or the interval reaches it"
    )
    sample = known.get(("spm", 50.0), [])
    if len(sample) > 1:
        words = f"SPM's estimate at 50 Mbit/s: below half of the fair window of {number(FAIR[50.0])} packets"
        yield within("5", words, sample, -math.inf, math.nextafter(FAIR[50.0] / 2, 0.0))


def _cell(where: str, sample: Sequence[float], mean: float, spread: float) -> Iterator[Check]:
    apart = deviation(sample)
    if apart is None:
        return
    width = f"30 % (ours), or the interval reaches it; {len(sample)} starts of 100"
    yield from _mean("numbers", f"mean estimate of {where}", sample, mean, "value", width)
    shown = f"{number(apart[0])} ({number(apart[1])} to {number(apart[2])})"
    holds = reaches(apart[1], apart[2], spread)
    yield Check("numbers", f"deviation of {where}", holds, spread, shown, "value", width)


def _mean(part: str, words: str, sample: Sequence[float], right: float, kind: Kind, width: str) -> Iterator[Check]:
    """A mean with its interval beside the window that is asked for; nothing of a single start."""
    found = estimate(sample)
    if found is not None and found.t_interval is not None:
        low, high = found.t_interval.low, found.t_interval.high
        shown = f"{number(found.mean)} ± {number(found.mean - low)} ({len(sample)} starts)"
        yield Check(part, words, reaches(low, high, right), right, shown, kind, width)


def shares_by_run(starts: Mapping[Start, float]) -> dict[int | None, float]:
    """Seed → deviation over mean of the starts of that run, of runs of several starts."""
    of_run: dict[int | None, list[float]] = {}
    for (seed, _), estimated in starts.items():
        of_run.setdefault(seed, []).append(estimated)
    return {
        seed: apart[0] / float(np.mean(one))
        for seed, one in of_run.items()
        if len(one) >= LEAST_STARTS and (apart := deviation(one))
    }


def _wider(known: Mapping[tuple[str, float], Mapping[Start, float]], other: str) -> Iterator[Check]:
    """How far SPM's estimates of a run lie apart, beside another's of the same seed: the runs are the sample."""
    for rate in sorted(rate for cca, rate in known if cca == "spm" and (other, rate) in known):
        spm, beside = (shares_by_run(known[cca, rate]) for cca in ("spm", other))
        more = [spm[seed] - beside[seed] for seed in spm if seed in beside]
        words = f"deviation over mean of SPM's estimates in a run at {rate:.0f} Mbit/s less that of {COLUMNS[other]}'s: above 0"
        if len(more) > 1:
            yield within("7", words, more, math.nextafter(0.0, 1.0), math.inf)


@compares("yu2009-claim4.7", TABLE, "1", "2", by_metrics=True)
def _conclusions(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    """Beside the windows of the cross traffic, which Table 4-1 is held against, and at 400 Mbit/s beside what the access link takes."""
    known = by_start(runs)
    for rate in (25.0, 400.0):
        sample = list(known.get(("spm", rate), {}).values())
        words = f"SPM's mean estimate at {rate:.0f} Mbit/s beside the window that is right there, packets"
        yield from _mean("1", words, sample, FAIR[rate], "order", "30 % (ours), or the interval reaches it")
    sample = list(known.get(("spm", 100.0), {}).values())
    if len(sample) > 1:
        words = f"SPM's estimate at 100 Mbit/s, moderate congestion: below the {number(FAIR[100.0])} packets that are right there"
        yield within("1", words, sample, -math.inf, math.nextafter(FAIR[100.0], 0.0))
    apart = {
        rate: {start: abs(math.log(one / FAIR[rate])) for start, one in known.get(("astart_bwe", rate), {}).items()}
        for rate in (25.0, 100.0, 400.0)
    }
    for rate, where in ((25.0, "a heavily congested network"), (400.0, "an idle one")):
        sample = [far - apart[100.0][start] for start, far in apart[rate].items() if start in apart[100.0]]
        words = f"how far BWE's estimate is from the right window in {where}, {rate:.0f} Mbit/s, less that at 100, as |ln|: above 0"
        yield within("2", words, sample, math.nextafter(0.0, 1.0), math.inf)
