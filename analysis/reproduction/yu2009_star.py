# SPDX-License-Identifier: Apache-2.0
"""Yu 2009 s2.5.1, the star of five clients: how the lead over Reno changes along a sweep, seed by seed.

A lead is the ratio of the packets in the first seconds to Reno's with the same arrivals and lifetimes, as the catalogue has it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from analysis.models.checks import Check
from analysis.reproduction.measured import compares
from analysis.reproduction.yu2009 import STARTS, above
from analysis.results import Run
from schema.catalogue import Entry

SHORT, WHOLE = "yu2009-fig2_3-2_8-short", "yu2009-fig2_3-2_8-whole"
SLOWEST, FASTEST = {"rate": "8mbit"}, {"rate": "20mbit"}
FAR, NEAR = {"delay": "200ms"}, {"delay": "10ms"}
USUAL = {"rate": "20mbit", "delay": "50ms", "gap": "exponential(5s)", "life": "pareto(100s, 1.35)"}
"""Of the cells that vary one thing, what the others are."""


def leads(runs: Sequence[Run], seconds: int, cca: str, where: Mapping[str, str], reno: str) -> dict[int | None, float]:
    """Seed → packets in the first `seconds` of each connection over Reno's; `where` replaces values of USUAL."""
    cell = USUAL | dict(where)
    known: dict[tuple[str, int | None], float] = {}
    for run in runs:
        values = run.metrics.get("initial_packets")
        value = values.get(str(seconds)) if isinstance(values, Mapping) else None
        here = all(run.params.get(name, one) == one for name, one in cell.items())
        if run.counted and here and isinstance(value, int | float):
            known[str(run.params["cca"]), run.seed] = float(value)
    return {
        seed: packets / known[reno, seed]
        for (name, seed), packets in known.items()
        if name == cca and known.get((reno, seed))
    }


def rise(first: Mapping[int | None, float], last: Mapping[int | None, float]) -> list[float]:
    return [last[seed] - first[seed] for seed in first if seed in last]


def _along(part: str, runs: Sequence[Run], first: Mapping[str, str], last: Mapping[str, str]) -> Iterator[Check]:
    """All four starts: the lead of the first 5 s in one cell less that in another."""
    (low,), (high,) = first.values(), last.values()
    for cca, name in STARTS.items():
        sample = rise(leads(runs, 5, cca, first, "reno"), leads(runs, 5, cca, last, "reno"))
        yield above(part, f"first 5 s of {name} over Reno's, {high} less {low}", sample, 0.0)


@compares("yu2009-fig2.3", SHORT, "2", by_metrics=True)
def _rates(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    yield from _along("2", runs, SLOWEST, FASTEST)


@compares("yu2009-claim2.5.1", SHORT, "2", by_metrics=True)
def _rates_and_delays(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    yield from _along("2", runs, SLOWEST, FASTEST)
    yield from _along("2", runs, FAR, NEAR)
    # "MISS and JS gain most with long delays", says the text of Fig 2-4A: the summary does not hold for all four in the thesis either
    (near,), (far,) = NEAR.values(), FAR.values()
    sample = rise(leads(runs, 5, "js", NEAR, "reno"), leads(runs, 5, "js", FAR, "reno"))
    words = f"the thesis' own Fig 2-4A has JS gain most with long delays: its first 5 s over Reno's, {far} less {near}"
    yield dataclasses.replace(above("2", words, sample, 0.0), explains=True)


@compares("yu2009-fig2.7", WHOLE, "3", by_metrics=True)
def _seconds(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    for cca in ("liss", "iss"):
        sample = rise(leads(runs, 1, cca, {}, "perack"), leads(runs, 3, cca, {}, "perack"))
        yield above("3", f"packets of {STARTS[cca]} over Reno's in the first 3 s less those in the first", sample, 0.0)
