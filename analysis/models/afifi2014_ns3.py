# SPDX-License-Identifier: Apache-2.0
"""Contradictions of Afifi 2014's chapter 7 beside NewReno and Westwood+ of the thesis' own simulator; FTAT is not in it.

The settings stand here; benchmarks/ns3_lossy.py asks ns-3 with them. The thesis does not name the version that it used; the algorithms are
other classes there (s4.2) than in the one that the record is of.
"""

from __future__ import annotations

from collections.abc import Iterator

from analysis.models import simulator
from analysis.models.checks import Check, decides
from analysis.statistics import estimate
from analysis.table import number
from schema.catalogue import Entry

PROGRAM = "ns3_lossy.cc"
SECONDS = 1000
SEEDS = range(1, 6)
SETTINGS = {"one": (11, 122, 0.02, 0, 100, 0), "four": (10, 270, 0.01, 0.01, 100, 1)}
"""Topology → Mbit/s, delay in ms, loss of data, loss of ACKs, queue in packets, NewReno the other way: as fig13-15.yml and fig27-30.yml."""
NAMES = {"newreno": "NewReno", "westwood": "Westwood+"}
SEQUENCE, LARGEST = 0, 1
"""Places in what the program prints: highest sequence number, largest window after the first loss (bytes)."""
TOLERANCE = 0.30
"""As of the runs here (fig13-15.yml, fig27-30.yml)."""


def seen(topology: str, algorithm: str, what: int) -> dict[int, float]:
    """Recorded seed → a number of its run."""
    runs = {seed: simulator.numbers(PROGRAM, algorithm, *SETTINGS[topology], seed, SECONDS) for seed in SEEDS}
    return {seed: run[what] for seed, run in runs.items() if run}


def printed(entry: Entry) -> dict[str, float]:
    """Algorithm, as the thesis names it → its number."""
    tables = entry.published.numbers
    assert isinstance(tables, list)
    return {str(row[0]): float(row[1]) for row in tables[0]["rows"]}


def _above(part: str, topology: str) -> Iterator[Check]:
    plus, reno = (seen(topology, algorithm, SEQUENCE) for algorithm in ("westwood", "newreno"))
    ratios = [plus[seed] / reno[seed] for seed in plus if seed in reno]
    found = estimate(ratios)
    if found is None or found.t_interval is None:
        return
    low = found.t_interval.low
    words = "the ratio of the sequence numbers is above 1 with its interval"
    says = f"in ns-3 itself, Westwood+ gets more than NewReno: {words} over {len(ratios)} seeds"
    yield Check(part, says, low > 1, None, f"{number(found.mean)} ± {number(found.mean - low)}", "order", explains=True)


def _sequences(entry: Entry, topology: str) -> Iterator[Check]:
    for algorithm, name in NAMES.items():
        found = estimate([*seen(topology, algorithm, SEQUENCE).values()])
        if found:
            value = printed(entry)[name]
            holds = abs(found.mean / value - 1) <= TOLERANCE
            says = f"in ns-3 itself, the highest sequence number of {name}, within {TOLERANCE:.0%}"
            yield Check("numbers", says, holds, value, found.mean, explains=True)
    yield from _above("numbers", topology)


@decides("afifi2014-fig15")
def _sequences_one(entry: Entry) -> Iterator[Check]:
    yield from _sequences(entry, "one")


@decides("afifi2014-fig27")
def _windows_four(entry: Entry) -> Iterator[Check]:
    largest = [*seen("four", "newreno", LARGEST).values()]
    if largest:
        value = printed(entry)["NewReno"]
        says = f"in ns-3 itself, NewReno's largest window after the first loss stays below, {len(largest)} seeds"
        yield Check("1", says, max(largest) < value, value, max(largest), explains=True)


@decides("afifi2014-fig29")
def _sequences_four(entry: Entry) -> Iterator[Check]:
    yield from _sequences(entry, "four")


@decides("afifi2014-fig30")
def _order_four(_entry: Entry) -> Iterator[Check]:
    yield from _above("2", "four")
