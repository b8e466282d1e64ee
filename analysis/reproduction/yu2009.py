# SPDX-License-Identifier: Apache-2.0
"""Yu 2009 s2.5.2: random graphs of 200 and 600 nodes. The thesis' graphs are lost, so graphs are the sample, each with the ratio of a start
to Reno on the same graph."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from analysis.models.checks import Check
from analysis.reproduction.intervals import within
from analysis.reproduction.measured import compares
from analysis.results import Run, show
from schema.catalogue import Entry

RENO = "perack"
"""ns-2's, which counts ACKs."""
STARTS = {"liss": "LISS", "iss": "ISS", "miss": "MISS", "js": "JS"}
TOTAL = "delivered_packets"
ALIKE = (0.9, 1.1)
""""Cannot be told apart", "not far from": ours."""
SUM_WIDTH = 0.05
"""How far a ratio of totals may be from the printed one: ours."""
LEVEL = 0.01
"""A total that is known to be so near to Reno's pays no price: ours, a quarter of the smallest that is printed."""
Cell = tuple[object, ...]
Values = dict[int, dict[tuple[str, Cell], float]]
"""Graph → (algorithm, cell of the sweep) → value."""


def by_graph(runs: Sequence[Run], metric: str, *names: str) -> Values:
    """A metric of the runs that count, by graph; a cell is what the named parameters are."""
    name, _, key = metric.partition(".")
    found: Values = {}
    for run in runs:
        value = run.metrics.get(name)
        value = value.get(key) if isinstance(value, Mapping) else value
        if run.counted and isinstance(value, int | float):
            cell = tuple(show(run.params.get(one)) for one in names)
            found.setdefault(int(run.params["graph"]), {})[str(run.params.get("cca")), cell] = float(value)
    return found


def ratios(values: Values, cca: str, *cells: Cell, over: str = RENO) -> list[float]:
    """Of each graph that has all of it, the sum over the cells with one start over that with another."""
    found = []
    for known in values.values():
        above, below = ([known.get((one, cell)) for cell in cells] for one in (cca, over))
        if None not in above and None not in below and sum(filter(None, below)) > 0:
            found.append(sum(filter(None, above)) / sum(filter(None, below)))
    return found


def growth(values: Values, cca: str, first: Cell, last: Cell) -> list[float]:
    """Of each graph, the ratio to Reno in the last cell less that in the first."""
    known = {graph: {graph: cells} for graph, cells in values.items()}
    pairs = [(ratios(one, cca, first), ratios(one, cca, last)) for one in known.values()]
    return [late[0] - early[0] for early, late in pairs if early and late]


def above(part: str, words: str, sample: Sequence[float], than: float = 1.0) -> Check:
    """More than, not as much as: a start that changes no packet has a ratio of exactly 1 on every graph."""
    return within(part, f"{words}: above {than:g}", sample, math.nextafter(than, math.inf), math.inf)


def below(part: str, words: str, sample: Sequence[float], than: float = 1.0) -> Check:
    """A total, which may also be level."""
    high = math.nextafter(than, -math.inf)
    return within(part, f"{words}: below {than:g}", sample, -math.inf, high, level=LEVEL)


# 200 nodes

RATES: tuple[Cell, ...] = (("4mbit", "exponential(1s)"), ("10mbit", "exponential(1s)"), ("20mbit", "exponential(1s)"))
OFTEN, SELDOM = ("10mbit", "exponential(500ms)"), ("10mbit", "exponential(5s)")
SMALL = "yu2009-fig2_11-2_13-short"


def _sums(part: str, runs: Sequence[Run], row: Mapping[str, float]) -> Iterator[Check]:
    totals = by_graph(runs, TOTAL, "rate", "gap")
    for cca, printed in row.items():
        words = f"total of {STARTS[cca]} over Reno's, all rates added"
        sample = ratios(totals, cca, *RATES)
        yield within(part, words, sample, printed - SUM_WIDTH, printed + SUM_WIDTH, "value", printed)


def _printed(entry: Entry) -> dict[str, float]:
    """Totals over Reno's, from the catalogue."""
    numbers = entry.published.numbers
    assert isinstance(numbers, Sequence)
    return {str(name).lower(): float(value) for name, value in numbers[0]["rows"]}


@compares("yu2009-fig2.11", SMALL, "1", "2", "3", "numbers", by_metrics=True)
def _rates(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    early, totals = by_graph(runs, "initial_packets.5", "rate", "gap"), by_graph(runs, TOTAL, "rate", "gap")
    for cca, name in STARTS.items():
        yield above("1", f"first 5 s of {name} over Reno's, all rates added", ratios(early, cca, *RATES))
    for cca, name in STARTS.items():
        if cca != "js":
            yield above("1", f"first 5 s of JS over {name}'s, all rates added", ratios(early, "js", *RATES, over=cca))
            rise = [known[cca, RATES[-1]] / known[cca, RATES[0]] for known in early.values() if _has(known, cca)]
            yield above("1", f"first 5 s of {name} at 20 Mbit/s over those at 4", rise)
    for cca in ("miss", "js"):
        words = f"total of {STARTS[cca]} over Reno's, all rates added"
        yield below("2", words, ratios(totals, cca, *RATES))
        words = f"total of {STARTS[cca]} over Reno's at 20 Mbit/s less that at 4"
        yield below("3", words, growth(totals, cca, RATES[0], RATES[-1]), 0.0)
    yield from _sums("numbers", runs, _printed(entry))


def _has(known: Mapping[tuple[str, Cell], float], cca: str) -> bool:
    return all((cca, cell) in known for cell in (RATES[0], RATES[-1]))


@compares("yu2009-fig2.12", SMALL, "1", "2", "numbers", by_metrics=True)
def _seconds(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    one, ten = (by_graph(runs, f"initial_packets.{n}", "rate", "gap") for n in (1, 10))
    for cca in ("miss", "js"):
        for other in ("liss", "iss"):
            words = f"first second of {STARTS[cca]} over {STARTS[other]}'s"
            yield above("1", words, ratios(one, cca, RATES[1], over=other))
    for cca in ("liss", "iss"):
        gained = [b - a for a, b in zip(ratios(one, cca, RATES[1]), ratios(ten, cca, RATES[1]), strict=True)]
        yield above("1", f"{STARTS[cca]} over Reno in the first 10 s less that in the first", gained, 0.0)
    totals = by_graph(runs, TOTAL, "rate", "gap")
    for cca in ("miss", "js"):
        yield below("2", f"total of {STARTS[cca]} over Reno's, all rates added", ratios(totals, cca, *RATES))
    yield from _sums("numbers", runs, _printed(entry))


@compares("yu2009-fig2.13", SMALL, "1", "2", by_metrics=True)
def _gaps(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    early, totals = by_graph(runs, "initial_packets.5", "rate", "gap"), by_graph(runs, TOTAL, "rate", "gap")
    for cca, name in STARTS.items():
        words = f"first 5 s of {name} over Reno's with 0.5 s between connections less that with 5 s"
        yield above("1", words, growth(early, cca, SELDOM, OFTEN), 0.0)
    for cca in ("miss", "js"):
        words = f"total of {STARTS[cca]} over Reno's with 0.5 s between connections less that with 5 s"
        yield below("2", words, growth(totals, cca, SELDOM, OFTEN), 0.0)


# 600 nodes

LARGE = "yu2009-fig2_14-2_16-short"
USUAL = ("10mbit", "exponential(500ms)", "50p")
SLOW = ("4mbit", "exponential(500ms)", "50p")
RARE, DENSE = ("10mbit", "exponential(1s)", "50p"), ("10mbit", "exponential(200ms)", "50p")
DEEP = ("10mbit", "exponential(500ms)", "500p")


def _large(runs: Sequence[Run], metric: str) -> Values:
    return by_graph(runs, metric, "rate", "gap", "buffer")


@compares("yu2009-fig2.14", (LARGE, SMALL), "1", "2", "3", by_metrics=True)
def _large_rates(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    small = [run for run in runs if run.experiment == SMALL]
    runs = [run for run in runs if run.experiment == LARGE]
    early, totals = _large(runs, "initial_packets.5"), _large(runs, TOTAL)
    for cca in ("liss", "iss"):
        words = f"first 5 s of {STARTS[cca]} over Reno's, 4 and 10 Mbit/s added"
        yield within("1", words, ratios(early, cca, SLOW, USUAL), *ALIKE)
    for cca in ("miss", "js"):
        words = f"of {STARTS[cca]} over Reno's, 4 and 10 Mbit/s added"
        yield above("1", f"first 5 s {words}", ratios(early, cca, SLOW, USUAL))
        yield below("2", f"total {words}", ratios(totals, cca, SLOW, USUAL))
    few = by_graph(small, "initial_packets.5", "rate", "gap")
    for cca, name in STARTS.items():
        words = f"first 5 s of {name} over Reno's, 4 and 10 Mbit/s added, on 200 nodes less that on 600"
        both = [
            (ratios({graph: few[graph]}, cca, *RATES[:2]), ratios({graph: early[graph]}, cca, SLOW, USUAL))
            for graph in sorted(few.keys() & early.keys())
        ]
        yield above("3", words, [first[0] - second[0] for first, second in both if first and second], 0.0)


@compares("yu2009-fig2.15", LARGE, "1", "2", by_metrics=True)
def _large_gaps(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    early, totals = _large(runs, "initial_packets.5"), _large(runs, TOTAL)
    cells = (RARE, USUAL, DENSE)
    for cca in ("liss", "iss"):
        words = f"of {STARTS[cca]} over Reno's, all times between connections added"
        yield above("1", f"first 5 s {words}", ratios(early, cca, *cells))
        yield above("1", f"total {words}", ratios(totals, cca, *cells))
    for cca in ("miss", "js"):
        words = f"of {STARTS[cca]} over Reno's, all times between connections added"
        yield above("2", f"first 5 s {words}", ratios(early, cca, *cells))
        yield below("2", f"total {words}", ratios(totals, cca, *cells))
        words = f"total of {STARTS[cca]} over Reno's with 0.2 s between connections less that with 1 s"
        yield below("2", words, growth(totals, cca, RARE, DENSE), 0.0)


@compares("yu2009-fig2.16", LARGE, "1", "2", by_metrics=True)
def _large_seconds(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    one, ten = _large(runs, "initial_packets.1"), _large(runs, "initial_packets.10")
    for cca in ("liss", "iss"):
        name = STARTS[cca]
        yield within("1", f"first second of {name} over Reno's", ratios(one, cca, USUAL), *ALIKE)
        gained = [b - a for a, b in zip(ratios(one, cca, USUAL), ratios(ten, cca, USUAL), strict=True)]
        yield above("1", f"{name} over Reno in the first 10 s less that in the first", gained, 0.0)
    for cca in ("miss", "js"):
        yield above("2", f"first second of {STARTS[cca]} over Reno's", ratios(one, cca, USUAL))
        yield below("2", f"total of {STARTS[cca]} over Reno's", ratios(_large(runs, TOTAL), cca, USUAL))


@compares("yu2009-claim2.7", LARGE, "2", "3", "4", by_metrics=True)
def _buffers(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    again, totals = _large(runs, "retransmission_rate"), _large(runs, TOTAL)
    words = "share of the server's packets that are sent again, JS over"
    for cca in ("liss", "iss"):
        yield above("2", f"{words} {STARTS[cca]}", ratios(again, "js", USUAL, over=cca))
        for start in ("miss", "js"):
            near = f"total of {STARTS[start]} over that of {STARTS[cca]} with queues of 500 packets"
            yield within("3", near, ratios(totals, start, DEEP, over=cca), *ALIKE)
    for cca in ("miss", "js"):
        yield below("4", f"total of {STARTS[cca]} over Reno's", ratios(totals, cca, USUAL))
    yield above("4", "total of LISS over that of MISS", ratios(totals, "liss", USUAL, over="miss"))
