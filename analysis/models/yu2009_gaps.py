# SPDX-License-Identifier: Apache-2.0
"""What packet pairs through queues (yu2009_pairs) decide of Yu 2009 s4.2 and of the figures of s4.4."""

from __future__ import annotations

import functools
import itertools
import statistics
from collections.abc import Iterator, Sequence

from analysis.arrays import np
from analysis.models.checks import Check, decides, relation
from analysis.models.yu2009_pairs import (
    CLOSE,
    CROSS_BITS,
    DUMBBELL,
    EVERY_MS,
    PARALLEL,
    PARKING_LOT,
    PROBE_BITS,
    Kind,
    Line,
    Sampling,
    above_ms,
    by_gap,
    half,
    lines,
    seeded,
    slope,
    through,
    words,
)
from analysis.models.yu2009_pairs import (
    apart as distance,
)
from schema.catalogue import Entry


@decides("yu2009-fig4.21")
def _below(entry: Entry) -> Iterator[Check]:
    above = above_ms(lines(PARKING_LOT, "cbr", 1, 1.0), 12)
    says = "mean output less input gap from 12 ms on is below 0, and by less than 0.6 ms (ours)"
    yield relation("1", says, -0.6 < statistics.fmean(above) < 0, words(above))


def _alike(entry: Entry, kind: Kind, sources: int, cbr: int) -> Iterator[Check]:
    """The line is that beside as many CBR sources as send as much."""
    measured, other = lines(PARKING_LOT, kind, sources, 1.0), lines(PARKING_LOT, "cbr", cbr, 1.0)
    if cbr < 10:
        apart, says = distance(measured, other), "a share of the gap, at most 0.02 (ours)"
        yield relation(
            "1", f"largest distance from the line beside {cbr} CBR from 8 ms on, {says}", apart <= CLOSE, apart
        )
    else:
        yield relation(
            "1",
            "slope of the line from 8 ms on: 1 within 0.1 (ours)",
            abs(slope(measured, 8) - 1) <= PARALLEL,
            slope(measured, 8),
        )
        apart, says = distance(measured, other), "a share of the gap, at most 0.1 (ours)"
        yield relation(
            "1", f"largest distance from the line beside ten CBR sources from 8 ms on, {says}", apart <= PARALLEL, apart
        )


@decides("yu2009-fig4.23")
def _full(entry: Entry) -> Iterator[Check]:
    measured = lines(PARKING_LOT, "cbr", 10, 1.0)
    yield relation(
        "1",
        "slope of the line from 8 ms on: 1 within 0.1 (ours)",
        abs(slope(measured, 8) - 1) <= PARALLEL,
        slope(measured, 8),
    )
    above, dumbbell = above_ms(measured, 8), above_ms(_dumbbell("cbr", 4), 8)
    nearer = 0 < statistics.fmean(above) < statistics.fmean(dumbbell)
    says = "mean output less input gap from 8 ms on is above 0, and less than on the dumbbell with four sources; both"
    yield relation("1", says, nearer, f"{words(above)} and {words(dumbbell)}")


decides("yu2009-fig4.22")(functools.partial(_alike, kind="cbr", sources=5, cbr=1))
decides("yu2009-fig4.24")(functools.partial(_alike, kind="poisson", sources=1, cbr=1))
decides("yu2009-fig4.25")(functools.partial(_alike, kind="poisson", sources=5, cbr=5))
decides("yu2009-fig4.26")(functools.partial(_alike, kind="poisson", sources=10, cbr=10))
decides("yu2009-fig4.27")(functools.partial(_alike, kind="pareto", sources=2, cbr=1))
decides("yu2009-fig4.28")(functools.partial(_alike, kind="pareto", sources=10, cbr=5))
decides("yu2009-fig4.29")(functools.partial(_alike, kind="pareto", sources=20, cbr=10))


def _dumbbell(kind: Kind, sources: int, sampling: Sampling = "poisson") -> tuple[Line, ...]:
    """On the dumbbell: 250 kbit/s a source on average, a Pareto source 500 kbit/s while it is on."""
    return lines(DUMBBELL, kind, sources, 0.5 if kind == "pareto" else 0.25, sampling)


def _outputs(measured: Sequence[Line]) -> dict[float, float]:
    return {gap: gap + above for gap, above in by_gap(measured).items()}


def _meets(measured: Sequence[Line]) -> float | None:
    """The smallest gap that the mean output may exceed by no more than a fiftieth, by its interval: sources' phases are drawn."""
    above = {gap: [line.above_ms[gap] for line in measured] for gap in measured[0].above_ms}
    return next((gap for gap, of in above.items() if statistics.fmean(of) - half(of) <= CLOSE * gap), None)


def _bends(measured: Sequence[Line], first: float, last: float) -> list[float]:
    """Of each seed, how far the output gaps between two gaps lie from the straight line through theirs, at most; ms."""
    bends = []
    for line in measured:
        above = line.above_ms
        chord = {gap: above[first] + (above[last] - above[first]) * (gap - first) / (last - first) for gap in above}
        bends.append(max(abs(above[gap] - chord[gap]) for gap in above if first < gap < last))
    return bends


def _drops(measured: Sequence[Line]) -> float:
    return statistics.fmean(line.dropped for line in measured)


def _meeting(entry: Entry, part: str, kind: Kind, sources: int, printed_ms: float, *, sooner: bool = False) -> Check:
    here = _meets(_dumbbell(kind, sources))
    holds = here is not None and (here <= printed_ms if sooner else here == printed_ms)
    says = "smallest of 4, 8, 12, 16, 32, 40 ms that the mean output exceeds by no more than 2 % (ours), its interval counted, ms"
    return Check(part, says, holds, printed_ms, here)


def _parallel(part: str, kind: Kind, sources: int) -> Check:
    steep = slope(_dumbbell(kind, sources), 8)
    return relation(part, "slope of the line from 8 ms on: 1 within 0.1 (ours)", abs(steep - 1) <= PARALLEL, steep)


def _more(part: str, what: str, more: Sequence[float], less: Sequence[float]) -> Check:
    """Seeds draw the same pairs, so they are compared one by one."""
    apart = [a - b for a, b in zip(more, less, strict=True)]
    return relation(part, f"{what}: difference", statistics.fmean(apart) > half(apart), words(apart))


@decides("yu2009-fig4.6")
def _one_cbr(entry: Entry) -> Iterator[Check]:
    output_ms = _outputs(_dumbbell("cbr", 1))
    same = abs(output_ms[4] - output_ms[8]) <= CLOSE * output_ms[8]
    yield relation("1", "mean output gaps of 4 and 8 ms", same, [round(output_ms[4], 2), round(output_ms[8], 2)])
    yield _meeting(entry, "2", "cbr", 1, 12, sooner=True)
    yield relation(
        "3", "mean output gap of 40 ms is slightly below it", 38 < output_ms[40] < 40, round(output_ms[40], 3)
    )


@decides("yu2009-fig4.7")
def _two_cbr(entry: Entry) -> Iterator[Check]:
    yield _meeting(entry, "1", "cbr", 2, 16)
    yield _straight("cbr", 2, 16)


@decides("yu2009-fig4.8")
def _three_cbr(entry: Entry) -> Iterator[Check]:
    yield _meeting(entry, "1", "cbr", 3, 32)
    yield _straight("cbr", 3, 32)


def _straight(kind: Kind, sources: int, last: float) -> Check:
    bends = _bends(_dumbbell(kind, sources), 8, last)
    says = f"distance of the output gaps from the straight line between 8 and {last:g} ms, at most 0.5 ms (ours)"
    return relation("1", says, statistics.fmean(bends) <= 0.5, words(bends))


@decides("yu2009-fig4.9")
def _four_cbr(entry: Entry) -> Iterator[Check]:
    measured = _dumbbell("cbr", 4)
    yield relation("1", "packets dropped, mean of the seeds", _drops(measured) > 0, _drops(measured))
    yield _parallel("1", "cbr", 4)
    most = max(above for gap, above in by_gap(measured).items() if gap >= 8)
    yield Check("1", "most that a mean output gap lies above y = x from 8 ms on, ms: below 8", 0 < most <= 8, 8, most)


@decides("yu2009-fig4.10")
def _one_poisson(entry: Entry) -> Iterator[Check]:
    yield _meeting(entry, "1", "poisson", 1, 16)
    later = _meets(_dumbbell("cbr", 1)) or 0
    yield relation("1", "meeting point beside one CBR source, which is sooner", later < 16, later)


def _idle(measured: Sequence[Line], load: float) -> list[float]:
    """Of each seed the largest distance, from 8 ms on, from the two straight lines that hold no idle time or all of it: what the cross
    traffic sends within the gap and the packet's own 8 ms, and y = x; ms.
    """
    own = PROBE_BITS / 1e3
    return [
        max(abs(above - max(own + (load - 1) * gap, 0)) for gap, above in line.above_ms.items() if gap >= 8)
        for line in measured
    ]


def _bent(entry: Entry, sources: int) -> Iterator[Check]:
    bent, straight = (_idle(_dumbbell(kind, sources), sources * 0.25) for kind in ("poisson", "cbr"))
    yield _more(
        "1", "largest distance from the straight line up to y = x, beside Poisson and CBR sources", bent, straight
    )
    yield _more("1", "output gaps from 8 ms on, which hold more idle time, beside Poisson and CBR sources",
                *(above_ms(_dumbbell(kind, sources), 8) for kind in ("poisson", "cbr")))  # fmt: skip


decides("yu2009-fig4.11")(functools.partial(_bent, sources=2))
decides("yu2009-fig4.12")(functools.partial(_bent, sources=3))


def _saturated(entry: Entry, kind: Kind) -> Iterator[Check]:
    measured = _dumbbell(kind, 4)
    yield relation("1", "packets dropped, mean of the seeds", _drops(measured) > 0, _drops(measured))
    yield _parallel("1", kind, 4)
    if kind == "pareto":
        fewer = _drops(_dumbbell(kind, 3))
        yield relation("1", "packets dropped beside three sources, which are fewer", fewer < _drops(measured), fewer)


decides("yu2009-fig4.13")(functools.partial(_saturated, kind="poisson"))
decides("yu2009-fig4.17")(functools.partial(_saturated, kind="pareto"))


@decides("yu2009-fig4.14")
def _one_pareto(entry: Entry) -> Iterator[Check]:
    yield _meeting(entry, "1", "pareto", 1, 16)


def _above_others(entry: Entry, sources: int) -> Iterator[Check]:
    measured = _dumbbell("pareto", sources)
    for other, kinds in (("Poisson", "poisson"), ("CBR", "cbr")):
        yield _more("1", f"output gaps from 8 ms on, beside Pareto and {other} sources", above_ms(measured, 8),
                    above_ms(_dumbbell("cbr" if kinds == "cbr" else "poisson", sources), 8))  # fmt: skip
    yield relation("1", "packets dropped, mean of the seeds", _drops(measured) > 0, _drops(measured))
    if sources > 2:
        fewer = _drops(_dumbbell("pareto", sources - 1))
        yield relation("1", "packets dropped beside one source less, which are fewer", fewer < _drops(measured), fewer)


decides("yu2009-fig4.15")(functools.partial(_above_others, sources=2))
decides("yu2009-fig4.16")(functools.partial(_above_others, sources=3))


@decides("yu2009-claim4.4.4")
def _burstiness(entry: Entry) -> Iterator[Check]:
    kinds: tuple[Kind, ...] = ("pareto", "poisson", "cbr")
    for sources in (1, 2, 3):  # four fill the link, which then limits what all of them send
        for burstier, less in itertools.pairwise(kinds):
            yield _more("1", f"output gaps from 8 ms on, beside {sources} {burstier} and {less} sources",
                        *(above_ms(_dumbbell(kind, sources), 8) for kind in (burstier, less)))  # fmt: skip
    for kind in kinds:
        apart = distance(_dumbbell(kind, 1, "periodic"), _dumbbell(kind, 1))
        says = f"largest distance of the lines with periodic and with Poisson sampling, one {kind} source, as a share; at most 0.1 (ours)"
        yield relation("2", says, apart <= 0.1, apart)
    apart = distance(_dumbbell("cbr", 1, "bounded"), _dumbbell("cbr", 1))
    says = "the same with pairs 0.5 to 1.5 s apart beside one CBR source; at most 0.02 (ours)"
    yield relation("3", says, apart <= CLOSE, apart)


def _sampled(gap: float, size_ms: float, load: float) -> tuple[list[float], list[float]]:
    """Output gaps of 400 pairs that do not disturb each other beside Poisson cross traffic of that share of the link, and what of the
    cross traffic arrived within each.
    """
    random, until = seeded(f"{gap} {load}"), 400 * EVERY_MS
    draws = np.random.default_rng(random.getrandbits(64))
    cross = np.cumsum(draws.exponential(CROSS_BITS / 1e3 / load, int(1.2 * until * load / 1.68)))
    begins = np.array([(i + random.uniform(0.2, 0.8)) * EVERY_MS for i in range(400)])
    left = through(np.column_stack([begins, begins + gap]).ravel().tolist(), size_ms, cross)
    came = np.searchsorted(cross, begins + gap, side="right") - np.searchsorted(cross, begins, side="right")
    return [b - a for a, b in zip(left[::2], left[1::2], strict=True)], (came * CROSS_BITS / 1e3).tolist()


@decides("yu2009-claim4.2")
def _linear(entry: Entry) -> Iterator[Check]:
    loads, e = (0.25, 0.5, 0.75), PROBE_BITS / 1e3
    worst = 0.0
    for gap, load in itertools.product((4.0, 12.0, 40.0), loads):
        samples, _ = _sampled(gap, 0.0, load)
        worst = max(worst, abs(statistics.fmean(samples) - gap) / (statistics.stdev(samples) / len(samples) ** 0.5))
    says = "pairs of size zero, gaps of 4, 12, 40 ms, loads of 0.25, 0.5, 0.75: output less input gap in standard errors, at most 3 (ours)"
    yield relation("1", says, worst <= 3, worst)
    above = {gap: [_mean_above(gap, e, load) for load in loads] for gap in (1.0, 4.0, 8.0, 16.0)}
    inside = all(0 <= value <= e for values in above.values() for value in values)
    says = "pairs of 8 ms, gaps of 1, 4, 8, 16 ms: mean output less input gap lies between 0 and 8 ms"
    yield relation("2", says, inside, [round(value, 2) for values in above.values() for value in values])
    short = {(gap, load): _sampled(gap, e, load) for gap in (2.0, 4.0, 6.0, 8.0) for load in loads}
    exact = all(np.allclose(samples, np.array(came) + e) for samples, came in short.values())
    yield relation("3", "each output gap of 2, 4, 6 and 8 ms is what arrived in between and 8 ms", exact)
    slopes = [
        statistics.linear_regression(
            (2, 4, 6, 8), [statistics.fmean(short[gap, load][0]) for gap in (2.0, 4.0, 6.0, 8.0)]
        ).slope
        for load in loads
    ]
    near = all(abs(a - b) <= 0.1 for a, b in zip(slopes, loads, strict=True))
    yield relation("3", f"slope at loads of {loads}: within 0.1 (ours)", near, [round(value, 3) for value in slopes])
    begins = [12.0 * i for i in range(200)]
    left = through([time for begin in begins for time in (begin, begin + 12)], e, np.zeros(0))
    mean = statistics.fmean(b - a for a, b in zip(left[::2], left[1::2], strict=True))
    yield relation("4", "pairs of 12 ms, each right after the one before: mean output gap", mean < 12, mean)


def _mean_above(gap: float, size_ms: float, load: float) -> float:
    return statistics.fmean(_sampled(gap, size_ms, load)[0]) - gap


@decides("yu2009-fig4.4")
def _compressed(entry: Entry) -> Iterator[Check]:
    p1, p2, p3, p4 = through((0.0, 12.0, 12.0, 24.0), PROBE_BITS / 1e3, np.zeros(0))
    gaps = [float(p2 - p1), float(p4 - p3)]
    yield relation(
        "1", "output gaps of two pairs of 12 ms, the second right after the first", gaps[0] == 12 > gaps[1], gaps
    )
    mean = statistics.fmean(gaps)
    yield relation("2", "mean of the two, below the input gap of 12 ms", mean < 12, mean)
