# SPDX-License-Identifier: Apache-2.0
"""Yu 2009 chapter 4: packet pairs through queues that serve in order of arrival, packet by packet.

Times in ms. A pair's packets and those of the cross traffic are ns-2's, 1000 and 210 bytes. Nothing is taken from a TCP stack.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from analysis.arrays import np
from analysis.records import Floats

PROBE_BITS, CROSS_BITS = 8000, 1680
GAPS_MS = (4, 8, 12, 16, 32, 40)
"""Those that the text names."""
EVERY_MS = 1000.0
ACCESS_MBPS, ACCESS_LIMIT = 1.0, 50
SEEDS = range(1, 6)
CLOSE, PARALLEL = 0.02, 0.1
"""Ours: how near two lines that look alike are, and one that meets y = x is to it, as a share of the gap; how far from 1 the slope of
a line parallel to y = x may be."""
Kind = Literal["cbr", "poisson", "pareto"]
Sampling = Literal["poisson", "periodic", "bounded"]


def seeded(seed: str) -> Random:
    return Random(seed)  # noqa: S311 (no secret)


def serve(arrivals: Floats, service: Floats, limit: float = float("inf")) -> Floats:
    """When packets leave a queue, NaN for one that finds `limit` others waiting or in service. arrivals: in order."""
    done = np.cumsum(service)
    left = done + np.maximum.accumulate(arrivals - (done - service))
    before = np.searchsorted(left, arrivals, side="right")
    if np.all(np.arange(len(arrivals)) - before < limit):
        return np.asarray(left)
    departures: list[float] = []
    waiting: list[float] = []
    first, count, free = 0, 0, -math.inf
    for at, takes in zip(arrivals.tolist(), service.tolist(), strict=True):
        while first < count and waiting[first] <= at:
            first += 1
        if count - first < limit:
            if at > free:  # max() takes longer than all else here, and this is done millions of times
                free = at
            free += takes
            waiting.append(free)
            count += 1
            departures.append(free)
        else:
            departures.append(math.nan)
    return np.asarray(departures, dtype=float)


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


def length_ms(path: Path, kind: Kind, sources: int) -> float:
    """The thesis' 1000 s where the dumbbell is not full; less where packets have to be counted one by one: all figures take seconds."""
    if not path.alone:
        return 1e6 if sources < 4 else 3e5
    if sources <= 2:
        return 1.5e5
    return 6e4 if kind == "pareto" else 4e4


def measured(path: Path, kind: Kind, sources: int, mbps: float, sampling: Sampling, seed: int) -> Line:
    """Pairs through their own link, the path and the receiver's link, beside the sources. Seeds draw the same pairs beside any of them."""
    random, until_ms = seeded(f"{kind} {sources} {seed}"), length_ms(path, kind, sources)
    sent = pairs(until_ms, seeded(f"pairs {seed}"), sampling)
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
    by_gap_ms: dict[float, list[float]] = {}
    for first in range(0, len(sent), 2):
        if first in arrived and first + 1 in arrived:
            gap = float(sent[first + 1] - sent[first])
            by_gap_ms.setdefault(round(gap, 6), []).append(arrived[first + 1] - arrived[first] - gap)
    return Line({gap: statistics.fmean(values) for gap, values in sorted(by_gap_ms.items())}, dropped)


@functools.cache
def lines(path: Path, kind: Kind, sources: int, mbps: float, sampling: Sampling = "poisson") -> tuple[Line, ...]:
    """One for each seed."""
    return tuple(measured(path, kind, sources, mbps, sampling, seed) for seed in SEEDS)


def above_ms(seeds: Sequence[Line], least_gap: float) -> list[float]:
    """Of each seed the mean over the gaps from the least on."""
    return [statistics.fmean(value for gap, value in line.above_ms.items() if gap >= least_gap) for line in seeds]


def slope(seeds: Sequence[Line], least_gap: float) -> float:
    """Of the line of least squares through the mean output gaps from the least gap on."""
    means = by_gap(seeds)
    kept = [gap for gap in means if gap >= least_gap]
    return 1 + statistics.linear_regression(kept, [means[gap] for gap in kept]).slope


def by_gap(seeds: Sequence[Line]) -> dict[float, float]:
    gaps = sorted({gap for line in seeds for gap in line.above_ms})  # a seed may have lost all pairs of a gap
    return {gap: statistics.fmean(line.above_ms[gap] for line in seeds if gap in line.above_ms) for gap in gaps}


def apart(seeds: Sequence[Line], other: Sequence[Line], least_gap: float = 8) -> float:
    """Largest distance of two lines, as a share of the gap."""
    here, there = by_gap(seeds), by_gap(other)
    return max(abs(here[gap] - there[gap]) / gap for gap in here if gap >= least_gap)


def half(values: Sequence[float]) -> float:
    """Half of the 95 % interval of the mean of five seeds (Student's t with four degrees of freedom)."""
    return 2.776 * statistics.stdev(values) / math.sqrt(len(values))


def words(values: Sequence[float]) -> str:
    return f"{statistics.fmean(values):.2f} ± {half(values):.2f} ms"


def through(times: Sequence[float], size_ms: float, cross: Floats) -> list[float]:
    """When packets that take so long leave a queue of 1 Mbit/s beside cross traffic of 1.68 ms a packet."""
    at, service, whose = joined((np.array(times), size_ms), (cross, CROSS_BITS / 1e3))
    return list(serve(at, service)[whose == 0])
