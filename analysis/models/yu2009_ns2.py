# SPDX-License-Identifier: Apache-2.0
"""Contradictions of Yu 2009 that the thesis' own simulator has, too, with the setting that its text gives.

The scripts' arguments are those of benchmarks/ns2.py, which names them.
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
HOSTS_S = (0.0, 0.00052)
"""A host takes no time for a packet, or a random one up to this."""
ACCESS_MS = (5, 40)
"""The delay of the access links is lost with Fig 2-2."""


GROWTH_S, IN_S = 500, 15
CROSS_SSTHRESH = 32
HELD_HOSTS_S = (0.0, 0.000333)
HELD = {"Reno's": 32.0, "SPM's mean": 88.7, "less than BWE's by a deviation": 519.1, "BWE's mean": 694.2}
"""Thresholds of Table 4-1 at 100 Mbit/s, packets."""


def sent_again(threshold: float) -> list[float]:
    """Packets that a connection at 100 Mbit/s sends again in 15 s whose slow start ends at a threshold (packets)."""
    runs = (
        simulator.numbers(PARKING_LOT, 100, seed, CROSS_SSTHRESH, hosts_s, GROWTH_S, threshold, IN_S)
        for hosts_s in HELD_HOSTS_S
        for seed in SEEDS
    )
    return [run[1] for run in runs if run]


def over_reno(start: str, shape: float) -> list[float]:
    """Packets that a start's connections deliver in all over Reno's with the same arrivals, at 20 Mbit/s."""
    ratios = []
    for access_ms in ACCESS_MS:
        for hosts_s in HOSTS_S:
            for seed in SEEDS:
                of_start, of_reno = (
                    simulator.numbers(STAR, 20, seed, access_ms, hosts_s, 3000, shape, kind) for kind in (start, "reno")
                )
                if of_start and of_reno:
                    ratios.append(of_start[2] / of_reno[2])
    return ratios


def _more_in_all(part: str, start: str, shape: float) -> Iterator[Check]:
    ratios = over_reno(start, shape)
    found = estimate(ratios)
    if found is None or found.t_interval is None:
        return
    says = (
        f"in ns-2 itself, at 20 Mbit/s and a shape of {shape}, {start.upper()}'s connections deliver more in all than Reno's: "
        f"their ratio is above 1 with its interval over {len(ratios)} runs"
    )
    shown = (
        f"{number(found.mean)} ± {number(found.mean - found.t_interval.low)} ({min(ratios):.3f} to {max(ratios):.3f})"
    )
    yield Check(part, says, found.t_interval.low > 1, None, shown, "order", explains=True)


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


@decides("yu2009-fig4.36")
def _large_thresholds(_entry: Entry) -> Iterator[Check]:
    """Whoever estimates it: BWE's threshold as the table prints it is more than that path takes."""
    for name in ("BWE's mean", "less than BWE's by a deviation"):
        again = sent_again(HELD[name])
        if again:
            says = (
                f"in ns-2 itself, a slow start that ends at {HELD[name]} packets ({name} in Table 4-1) loses packets at 100 Mbit/s: "
                f"each of {len(again)} runs sends some again"
            )
            yield Check(
                "2", says, min(again) > 0, None, f"{min(again):.0f} to {max(again):.0f}", "order", explains=True
            )
