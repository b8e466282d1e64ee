# SPDX-License-Identifier: Apache-2.0
"""Yu 2009 chapter 4: packet pairs through queues that serve in order of arrival, packet by packet; what it decides of s4.2 and s4.4.3.

Times in ms. A pair's packets and those of the cross traffic are ns-2's, 1000 and 210 bytes. Nothing is taken from a TCP stack.
"""

from __future__ import annotations

import functools
import itertools
import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from analysis.arrays import np
from analysis.models.checks import Check, decides, relation
from analysis.records import Floats
from schema.catalogue import Entry

PROBE_BITS, CROSS_BITS = 8000, 1680
GAPS_MS = (4, 8, 12, 16, 32, 40)
"""Those that the text names."""
EVERY_MS = 1000.0
ACCESS_MBPS, ACCESS_LIMIT = 1.0, 50
SEEDS = range(1, 6)
CLOSE, PARALLEL = 0.02, 0.1
"""Ours: how near two lines that look alike are, and one that meets y = x is to it, as a share of the gap; how far from 1 the slope of a line
parallel to y = x may be."""
Kind = Literal["cbr", "poisson", "pareto"]
Sampling = Literal["poisson", "periodic", "bounded"]


def serve(arrivals: Floats, service: Floats, limit: float = float("inf")) -> Floats:
    """When packets leave a queue, NaN for one that finds `limit` others waiting or in service. arrivals: in order."""
    done = np.cumsum(service)
    left = done + np.maximum.accumulate(arrivals - (done - service))
    before = np.searchsorted(left, arrivals, side="right")
    if np.all(np.arange(len(arrivals)) - before < limit):
        return np.asarray(left)
    found = np.full(len(arrivals), np.nan)
    waiting: list[float] = []
    first, free = 0, -np.inf
    for i, (at, takes) in enumerate(zip(arrivals.tolist(), service.tolist(), strict=True)):
        while first < len(waiting) and waiting[first] <= at:
            first += 1
        if len(waiting) - first < limit:
            free = max(free, at) + takes
            waiting.append(free)
            found[i] = free
    return found


def joined(*streams: tuple[Floats, float]) -> tuple[Floats, Floats, Floats]:
    """Streams of (arrivals, service) in order of arrival: times, service, and each packet's stream."""
    times = np.concatenate([times for times, _ in streams])
    service = np.concatenate([np.full(len(times), takes) for times, takes in streams])
    whose = np.concatenate([np.full(len(times), i) for i, (times, _) in enumerate(streams)])
    order = np.argsort(times, kind="stable")
    return times[order], service[order], whose[order]


def source(kind: Kind, mbps: float, until_ms: float, random: Random) -> Floats:
    """Packets of one source as they leave its access link. mbps: the mean, of a Pareto source the rate while it is on."""
    gap = CROSS_BITS / mbps / 1e3
    if kind == "cbr":
        sent = np.arange(random.uniform(0, gap), until_ms, gap)
    elif kind == "poisson":
        sent = np.cumsum(np.random.default_rng(random.getrandbits(64)).exponential(gap, int(1.2 * until_ms / gap)))
        sent = sent[sent < until_ms]
    else:  # on and off for 500 ms on average, ns-2's shape of 1.5: the least is a third of the mean
        parts, now = [np.zeros(0)], 0.0
        while now < until_ms:
            on, off = (500 / 3 * random.paretovariate(1.5) for _ in range(2))
            parts.append(np.arange(now, min(now + on, until_ms), gap))
            now += on + off
        sent = np.concatenate(parts)
    left = serve(sent, np.full(len(sent), CROSS_BITS / ACCESS_MBPS / 1e3), ACCESS_LIMIT)
    return left[~np.isnan(left)]


def pairs(until_ms: float, random: Random, sampling: Sampling) -> Floats:
    """Sending times of pairs, two each, the gaps in turn; a pair whose time comes while another is under way follows right after it."""
    sent: list[float] = []
    at = random.uniform(0, EVERY_MS)
    while at < until_ms - 100:
        begin = max(at, sent[-1]) if sent else at
        sent += [begin, begin + GAPS_MS[len(sent) // 2 % len(GAPS_MS)]]
        if sampling == "poisson":
            at += random.expovariate(1 / EVERY_MS)
        else:
            at += EVERY_MS if sampling == "periodic" else random.uniform(EVERY_MS / 2, EVERY_MS * 3 / 2)
    return np.array(sent)


@dataclass(frozen=True)
class Line:
    """above_ms: mean output gap less input gap, by input gap; dropped: packets that found a full queue on the path"""

    above_ms: dict[float, float]
    dropped: int


@dataclass(frozen=True)
class Path:
    """Links in a row, each with the sources that cross it alone. limit: packets"""

    mbps: float
    links: int
    limit: int
    alone: int = 0


DUMBBELL = Path(1.0, 1, 50)
PARKING_LOT = Path(10.0, 4, 300, 1)
"""Its fifth pair of one hop has no fifth link; it goes with the sources over the whole path."""


def length_ms(path: Path, sources: int) -> float:
    """The thesis' 1000 s on the dumbbell; less where a second has thousands of packets, so that all figures take seconds."""
    if not path.alone:
        return 1e6
    return 3e5 if sources <= 2 else 6e4


def measured(path: Path, kind: Kind, sources: int, mbps: float, sampling: Sampling, seed: int) -> Line:
    """Pairs through their own link, the path and the receiver's link, beside the sources. Seeds draw the same pairs beside any of them."""
    random, until_ms = Random(f"{kind} {sources} {seed}"), length_ms(path, sources)
    sent = pairs(until_ms, Random(f"pairs {seed}"), sampling)
    takes = PROBE_BITS / ACCESS_MBPS / 1e3
    probes = serve(sent, np.full(len(sent), takes))
    across = [source(kind, mbps, until_ms, random) for _ in range(sources + path.alone)]
    number, cross, dropped = np.arange(len(sent)), np.sort(np.concatenate(across)), 0
    for _ in range(path.links):
        alone = [source(kind, mbps, until_ms, random) for _ in range(path.alone)]
        times, service, whose = joined((probes, PROBE_BITS / path.mbps / 1e3), (cross, CROSS_BITS / path.mbps / 1e3),
                                       *((one, CROSS_BITS / path.mbps / 1e3) for one in alone))  # fmt: skip
        left = serve(times, service, path.limit)
        dropped += int(np.isnan(left).sum())
        probes, cross = left[whose == 0], left[whose == 1]
        number, probes, cross = number[~np.isnan(probes)], probes[~np.isnan(probes)], cross[~np.isnan(cross)]
    arrived = dict(zip(number.tolist(), serve(probes, np.full(len(probes), takes)).tolist(), strict=True))
    found: dict[float, list[float]] = {}
    for first in range(0, len(sent), 2):
        if first in arrived and first + 1 in arrived:
            gap = float(sent[first + 1] - sent[first])
            found.setdefault(round(gap, 6), []).append(arrived[first + 1] - arrived[first] - gap)
    return Line({gap: statistics.fmean(values) for gap, values in sorted(found.items())}, dropped)


@functools.cache
def lines(path: Path, kind: Kind, sources: int, mbps: float, sampling: Sampling = "poisson") -> tuple[Line, ...]:
    """One for each seed."""
    return tuple(measured(path, kind, sources, mbps, sampling, seed) for seed in SEEDS)


def above_ms(found: Sequence[Line], least_gap: float) -> list[float]:
    """Of each seed the mean over the gaps from the least on."""
    return [statistics.fmean(value for gap, value in line.above_ms.items() if gap >= least_gap) for line in found]


def slope(found: Sequence[Line], least_gap: float) -> float:
    """Of the line of least squares through the mean output gaps from the least gap on."""
    means = _by_gap(found)
    kept = [gap for gap in means if gap >= least_gap]
    return 1 + statistics.linear_regression(kept, [means[gap] for gap in kept]).slope


def _by_gap(found: Sequence[Line]) -> dict[float, float]:
    return {gap: statistics.fmean(line.above_ms[gap] for line in found) for gap in found[0].above_ms}


def _apart(found: Sequence[Line], other: Sequence[Line], least_gap: float = 8) -> float:
    """Largest distance of two lines, as a share of the gap."""
    here, there = _by_gap(found), _by_gap(other)
    return max(abs(here[gap] - there[gap]) / gap for gap in here if gap >= least_gap)


def _half(values: Sequence[float]) -> float:
    """Half of the 95 % interval of the mean of five seeds (Student's t with four degrees of freedom)."""
    return 2.776 * statistics.stdev(values) / math.sqrt(len(values))


def _words(values: Sequence[float]) -> str:
    return f"{statistics.fmean(values):.2f} ± {_half(values):.2f} ms"


@decides("yu2009-fig4.21")
def _below(entry: Entry) -> Iterator[Check]:
    above = above_ms(lines(PARKING_LOT, "cbr", 1, 1.0), 12)
    says = "mean output less input gap from 12 ms on is below 0, and by less than 0.6 ms (ours)"
    yield relation("1", says, -0.6 < statistics.fmean(above) < 0, _words(above))


def _alike(entry: Entry, kind: Kind, sources: int, cbr: int) -> Iterator[Check]:
    """The line is that beside as many CBR sources as send as much."""
    found, other = lines(PARKING_LOT, kind, sources, 1.0), lines(PARKING_LOT, "cbr", cbr, 1.0)
    if cbr < 10:
        apart, says = _apart(found, other), "a share of the gap, at most 0.02 (ours)"
        yield relation("1", f"largest distance from the line beside {cbr} CBR from 8 ms on, {says}", apart <= CLOSE, apart)
    else:
        yield relation("1", "slope of the line from 8 ms on: 1 within 0.1 (ours)", abs(slope(found, 8) - 1) <= PARALLEL, slope(found, 8))
        apart, says = _apart(found, other), "a share of the gap, at most 0.1 (ours)"
        yield relation("1", f"largest distance from the line beside ten CBR sources from 8 ms on, {says}", apart <= PARALLEL, apart)


@decides("yu2009-fig4.23")
def _full(entry: Entry) -> Iterator[Check]:
    found = lines(PARKING_LOT, "cbr", 10, 1.0)
    yield relation("1", "slope of the line from 8 ms on: 1 within 0.1 (ours)", abs(slope(found, 8) - 1) <= PARALLEL, slope(found, 8))
    above, dumbbell = above_ms(found, 8), above_ms(_dumbbell("cbr", 4), 8)
    nearer = 0 < statistics.fmean(above) < statistics.fmean(dumbbell)
    says = "mean output less input gap from 8 ms on is above 0, and less than on the dumbbell with four sources; both"
    yield relation("1", says, nearer, f"{_words(above)} and {_words(dumbbell)}")


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


def _outputs(found: Sequence[Line]) -> dict[float, float]:
    return {gap: gap + above for gap, above in _by_gap(found).items()}


def _meets(found: Sequence[Line]) -> float | None:
    """The smallest gap that the mean output may exceed by no more than a fiftieth, by its interval: sources' phases are drawn."""
    above = {gap: [line.above_ms[gap] for line in found] for gap in found[0].above_ms}
    return next((gap for gap, of in above.items() if statistics.fmean(of) - _half(of) <= CLOSE * gap), None)


def _bends(found: Sequence[Line], first: float, last: float) -> list[float]:
    """Of each seed, how far the output gaps between two gaps lie from the straight line through theirs, at most; ms."""
    bends = []
    for line in found:
        above = line.above_ms
        chord = {gap: above[first] + (above[last] - above[first]) * (gap - first) / (last - first) for gap in above}
        bends.append(max(abs(above[gap] - chord[gap]) for gap in above if first < gap < last))
    return bends


def _drops(found: Sequence[Line]) -> float:
    return statistics.fmean(line.dropped for line in found)


def _meeting(entry: Entry, part: str, kind: Kind, sources: int, printed_ms: float, *, sooner: bool = False) -> Check:
    here = _meets(_dumbbell(kind, sources))
    holds = here is not None and (here <= printed_ms if sooner else here == printed_ms)
    return Check(part, "smallest of 4, 8, 12, 16, 32, 40 ms that the mean output exceeds by no more than 2 % (ours), its interval counted, ms", holds, printed_ms, here)


def _parallel(part: str, kind: Kind, sources: int) -> Check:
    steep = slope(_dumbbell(kind, sources), 8)
    return relation(part, "slope of the line from 8 ms on: 1 within 0.1 (ours)", abs(steep - 1) <= PARALLEL, steep)


def _more(part: str, what: str, more: Sequence[float], less: Sequence[float]) -> Check:
    """Seeds draw the same pairs, so they are compared one by one."""
    apart = [a - b for a, b in zip(more, less, strict=True)]
    return relation(part, f"{what}: difference", statistics.fmean(apart) > _half(apart), _words(apart))


@decides("yu2009-fig4.6")
def _one_cbr(entry: Entry) -> Iterator[Check]:
    found = _outputs(_dumbbell("cbr", 1))
    same = abs(found[4] - found[8]) <= CLOSE * found[8]
    yield relation("1", "mean output gaps of 4 and 8 ms", same, [round(found[4], 2), round(found[8], 2)])
    yield _meeting(entry, "2", "cbr", 1, 12, sooner=True)
    yield relation("3", "mean output gap of 40 ms is slightly below it", 38 < found[40] < 40, round(found[40], 3))


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
    return relation("1", says, statistics.fmean(bends) <= 0.5, _words(bends))


@decides("yu2009-fig4.9")
def _four_cbr(entry: Entry) -> Iterator[Check]:
    found = _dumbbell("cbr", 4)
    yield relation("1", "packets dropped, mean of the seeds", _drops(found) > 0, _drops(found))
    yield _parallel("1", "cbr", 4)
    most = max(above for gap, above in _by_gap(found).items() if gap >= 8)
    yield Check("1", "most that a mean output gap lies above y = x from 8 ms on, ms: below 8", 0 < most <= 8, 8, most)


@decides("yu2009-fig4.10")
def _one_poisson(entry: Entry) -> Iterator[Check]:
    yield _meeting(entry, "1", "poisson", 1, 16)
    later = _meets(_dumbbell("cbr", 1)) or 0
    yield relation("1", "meeting point beside one CBR source, which is sooner", later < 16, later)


def _idle(found: Sequence[Line], load: float) -> list[float]:
    """Of each seed the largest distance, from 8 ms on, from the two straight lines that hold no idle time or all of it: what the cross
    traffic sends within the gap and the packet's own 8 ms, and y = x; ms.
    """
    own = PROBE_BITS / 1e3
    return [max(abs(above - max(own + (load - 1) * gap, 0)) for gap, above in line.above_ms.items() if gap >= 8) for line in found]


def _bent(entry: Entry, sources: int) -> Iterator[Check]:
    bent, straight = (_idle(_dumbbell(kind, sources), sources * 0.25) for kind in ("poisson", "cbr"))
    yield _more("1", "largest distance from the straight line up to y = x, beside Poisson and CBR sources", bent, straight)
    yield _more("1", "output gaps from 8 ms on, which hold more idle time, beside Poisson and CBR sources",
                *(above_ms(_dumbbell(kind, sources), 8) for kind in ("poisson", "cbr")))  # fmt: skip


decides("yu2009-fig4.11")(functools.partial(_bent, sources=2))
decides("yu2009-fig4.12")(functools.partial(_bent, sources=3))


def _saturated(entry: Entry, kind: Kind) -> Iterator[Check]:
    found = _dumbbell(kind, 4)
    yield relation("1", "packets dropped, mean of the seeds", _drops(found) > 0, _drops(found))
    yield _parallel("1", kind, 4)
    if kind == "pareto":
        fewer = _drops(_dumbbell(kind, 3))
        yield relation("1", "packets dropped beside three sources, which are fewer", fewer < _drops(found), fewer)


decides("yu2009-fig4.13")(functools.partial(_saturated, kind="poisson"))
decides("yu2009-fig4.17")(functools.partial(_saturated, kind="pareto"))


@decides("yu2009-fig4.14")
def _one_pareto(entry: Entry) -> Iterator[Check]:
    yield _meeting(entry, "1", "pareto", 1, 16)


def _above_others(entry: Entry, sources: int) -> Iterator[Check]:
    found = _dumbbell("pareto", sources)
    for other, kinds in (("Poisson", "poisson"), ("CBR", "cbr")):
        yield _more("1", f"output gaps from 8 ms on, beside Pareto and {other} sources", above_ms(found, 8),
                    above_ms(_dumbbell("cbr" if kinds == "cbr" else "poisson", sources), 8))  # fmt: skip
    yield relation("1", "packets dropped, mean of the seeds", _drops(found) > 0, _drops(found))
    if sources > 2:
        fewer = _drops(_dumbbell("pareto", sources - 1))
        yield relation("1", "packets dropped beside one source less, which are fewer", fewer < _drops(found), fewer)


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
        apart = _apart(_dumbbell(kind, 1, "periodic"), _dumbbell(kind, 1))
        says = f"largest distance of the lines with periodic and with Poisson sampling, one {kind} source, a share of the gap; at most 0.1 (ours)"
        yield relation("2", says, apart <= 0.1, apart)
    apart = _apart(_dumbbell("cbr", 1, "bounded"), _dumbbell("cbr", 1))
    says = "the same with pairs 0.5 to 1.5 s apart beside one CBR source; at most 0.02 (ours)"
    yield relation("3", says, apart <= CLOSE, apart)


def through(times: Sequence[float], size_ms: float, cross: Floats) -> list[float]:
    """When packets that take so long leave a queue of 1 Mbit/s beside cross traffic of 1.68 ms a packet."""
    at, service, whose = joined((np.array(times), size_ms), (cross, CROSS_BITS / 1e3))
    return list(serve(at, service)[whose == 0])


def _sampled(gap: float, size_ms: float, load: float) -> tuple[list[float], list[float]]:
    """Output gaps of 400 pairs that do not disturb each other beside Poisson cross traffic of that share of the link, and what of the
    cross traffic arrived within each.
    """
    random, until = Random(f"{gap} {load}"), 400 * EVERY_MS
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
        found, _ = _sampled(gap, 0.0, load)
        worst = max(worst, abs(statistics.fmean(found) - gap) / (statistics.stdev(found) / len(found) ** 0.5))
    says = "pairs of size zero, gaps of 4, 12, 40 ms, loads of 0.25, 0.5, 0.75: output less input gap in standard errors, at most 3 (ours)"
    yield relation("1", says, worst <= 3, worst)
    above = {gap: [_mean_above(gap, e, load) for load in loads] for gap in (1.0, 4.0, 8.0, 16.0)}
    inside = all(0 <= value <= e for values in above.values() for value in values)
    says = "pairs of 8 ms, gaps of 1, 4, 8, 16 ms: mean output less input gap lies between 0 and 8 ms"
    yield relation("2", says, inside, [round(value, 2) for values in above.values() for value in values])
    short = {(gap, load): _sampled(gap, e, load) for gap in (2.0, 4.0, 6.0, 8.0) for load in loads}
    exact = all(np.allclose(found, np.array(came) + e) for found, came in short.values())
    yield relation("3", "each output gap of 2, 4, 6 and 8 ms is what arrived in between and 8 ms", exact)
    slopes = [
        statistics.linear_regression((2, 4, 6, 8), [statistics.fmean(short[gap, load][0]) for gap in (2.0, 4.0, 6.0, 8.0)]).slope
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
    yield relation("1", "output gaps of two pairs of 12 ms, the second right after the first", gaps[0] == 12 > gaps[1], gaps)
    mean = statistics.fmean(gaps)
    yield relation("2", "mean of the two, below the input gap of 12 ms", mean < 12, mean)
