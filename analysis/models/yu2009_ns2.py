# SPDX-License-Identifier: Apache-2.0
"""Contradictions of Yu 2009 that the thesis' own simulator has, too, with the setting that its text gives.

The settings stand here; benchmarks/ns2.py asks ns-2 with them.
"""

from __future__ import annotations

from collections.abc import Iterator

from analysis.models import simulator
from analysis.models.checks import Check, decides
from analysis.statistics import estimate
from analysis.table import number
from schema.catalogue import Entry

STAR, PARKING_LOT = "ns2_star.tcl", "ns2_parking_lot.tcl"
SEEDS = range(1, 6)
STARTS_MBPS, STAR_UNTIL_S = 20, 3000
HOSTS_S = (0.0, 0.00052)
"""A host takes no time for a packet, or a random one up to this."""
ACCESS_MS = (5, 40)
"""The delay of the access links is lost with Fig 2-2."""
DELIVERED, DROPPED = 2, 3
"""Places in what the star's script prints: packets in all, and packets that the slow links dropped."""

GROWTH_S, IN_S = 500, 15
CROSS_SSTHRESH = 32
HELD_HOSTS_S = (0.0, 0.000333)
HELD: dict[int, dict[str, float]] = {
    25: {"Reno": 32.0, "PaSt": 39.5, "SPM": 57.0, "BWE": 214.0, "Hoe": 683.6},
    50: {"Reno": 32.0, "PaSt": 46.4, "SPM": 98.8, "BWE": 418.5, "Hoe": 1205.4},
    100: {"Reno": 32.0, "PaSt": 54.2, "SPM": 88.7, "BWE less a deviation": 519.1, "BWE": 694.2},
}
"""Mbit/s → thresholds in packets: Reno's, and the means that Table 4-1 prints of the estimates. ERE's are below Reno's, which
is in force then."""


def sent_again(mbps: int, threshold: float) -> list[float]:
    """Packets that a connection sends again in its first 15 s whose slow start ends at a threshold (packets)."""
    runs = (
        simulator.numbers(PARKING_LOT, mbps, seed, CROSS_SSTHRESH, hosts_s, GROWTH_S, threshold, IN_S)
        for hosts_s in HELD_HOSTS_S
        for seed in SEEDS
    )
    return [run[1] for run in runs if run]


def over(start: str, other: str, shape: float, what: int = DELIVERED) -> list[float]:
    """A start's number over another's with the same arrivals, at 20 Mbit/s."""
    ratios = []
    for access_ms in ACCESS_MS:
        for hosts_s in HOSTS_S:
            for seed in SEEDS:
                of_start, of_other = (
                    simulator.numbers(STAR, STARTS_MBPS, seed, access_ms, hosts_s, STAR_UNTIL_S, shape, kind)
                    for kind in (start, other)
                )
                if of_start and of_other:
                    ratios.append(of_start[what] / of_other[what])
    return ratios


def _in_ns2(part: str, words: str, ratios: list[float], *, above: bool = True) -> Iterator[Check]:
    """The ratio lies above 1, or below, with its interval over the runs."""
    found = estimate(ratios)
    if found is None or found.t_interval is None:
        return
    low, high = found.t_interval.low, found.t_interval.high
    side = "above" if above else "below"
    says = f"in ns-2 itself, at {STARTS_MBPS} Mbit/s, {words}: the ratio is {side} 1 with its interval over {len(ratios)} runs"
    shown = f"{number(found.mean)} ± {number(found.mean - low)} ({min(ratios):.3f} to {max(ratios):.3f})"
    yield Check(part, says, low > 1 if above else high < 1, None, shown, "order", explains=True)


def _more_in_all(part: str, start: str, shape: float) -> Iterator[Check]:
    words = f"{start.upper()}'s connections deliver more in all than Reno's (shape {shape})"
    yield from _in_ns2(part, words, over(start, "reno", shape))


@decides("yu2009-fig2.3")
def _against_the_rate(_entry: Entry) -> Iterator[Check]:
    yield from _more_in_all("3", "miss", 1.35)


@decides("yu2009-fig2.5")
def _against_the_gap(_entry: Entry) -> Iterator[Check]:
    for start in ("liss", "iss"):
        yield from _more_in_all("2", start, 1.35)


@decides("yu2009-fig2.8")
def _against_the_shape(_entry: Entry) -> Iterator[Check]:
    for start, shape in (("miss", 1.35), ("miss", 1.05), ("js", 1.05)):
        yield from _more_in_all("2", start, shape)


@decides("yu2009-claim2.5.1")
def _summary(_entry: Entry) -> Iterator[Check]:
    yield from _more_in_all("3", "miss", 1.35)
    yield from _in_ns2("3", "JS drops less than ISS", over("js", "iss", 1.35, DROPPED), above=False)


def _loses(part: str, mbps: int, whose: str, *, some: bool) -> Iterator[Check]:
    """Whoever estimates it, a threshold loses packets in more than half of the runs, or in less than half of them."""
    threshold = HELD[mbps][whose]
    again = sent_again(mbps, threshold)
    if not again:
        return
    lossy = sum(packets > 0 for packets in again)
    says = (
        f"in ns-2 itself, at {mbps} Mbit/s, a slow start that ends at {threshold} packets ({whose} in Table 4-1) "
        f"loses packets in {'more' if some else 'less'} than half of {len(again)} runs"
    )
    holds = 2 * lossy > len(again) if some else 2 * lossy < len(again)
    yield Check(part, says, holds, None, f"{lossy} of {len(again)}", "order", explains=True)


@decides("yu2009-fig4.34")
def _severely_congested(_entry: Entry) -> Iterator[Check]:
    for whose in ("Reno", "PaSt"):
        yield from _loses("1", 25, whose, some=False)


@decides("yu2009-fig4.36")
def _large_thresholds(_entry: Entry) -> Iterator[Check]:
    for whose in ("BWE", "BWE less a deviation"):
        yield from _loses("2", 100, whose, some=True)
