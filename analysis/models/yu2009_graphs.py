# SPDX-License-Identifier: Apache-2.0
"""What MISS and JS deliver in all on random graphs in ns-2, over Reno (Yu 2009 section 2.5.2).

The thesis has a few percent less than Reno's. Runs are five and ten times as long as those of the experiments. The settings stand here;
benchmarks/ns2.py asks ns-2 with them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

from analysis.models import simulator
from analysis.models.checks import Check, decides
from analysis.statistics import estimate
from analysis.table import number
from schema.catalogue import Entry

SCRIPT = "ns2_graph.tcl"
GRAPHS = range(1, 6)
STARTS = ("miss", "js")
SEED, MBPS, HOSTS_S = 1, 10, 0.0
GAPS_S = {200: 1.0, 600: 0.5}
"""Nodes → mean time between connections: the catalogue's choice for 200 nodes, the thesis' for 600."""
UNTIL_S = {200: 1000, 600: 300}
"""The thesis has 3000 s, the experiments 100 and 60."""
EARLY, WHOLE = 1, 2
"""Places in what the script prints: packets of the first five seconds of each connection, and in all."""
LEAST = 0.99
"""Of Reno's total, which is not less by more than the level of the experiments' claims: ours."""
Asked = tuple[str, int, int, int, int, float, int, float, str]


def asked(nodes: int, graph: int, kind: str) -> Asked:
    """The script and its arguments."""
    return SCRIPT, nodes, graph, MBPS, SEED, HOSTS_S, UNTIL_S[nodes], GAPS_S[nodes], kind


@functools.cache
def over_reno(nodes: int, kind: str, what: int) -> tuple[float, ...]:
    """A start's number over Reno's with the same arrivals, of each graph that is recorded."""
    pairs = ((simulator.numbers(*asked(nodes, graph, one)) for one in (kind, "reno")) for graph in GRAPHS)
    return tuple(start[what] / reno[what] for start, reno in pairs if start and reno)


def _as_much_in_all(part: str, nodes: int) -> Iterator[Check]:
    for kind in STARTS:
        ratios = over_reno(nodes, kind, WHOLE)
        found = estimate(ratios)
        if found is None or found.t_interval is None:
            continue
        low = found.t_interval.low
        says = (
            f"in ns-2 itself, {UNTIL_S[nodes]} s at {MBPS} Mbit/s, {kind.upper()}'s connections deliver in all at least "
            f"{LEAST:.0%} (ours) of Reno's with its interval over {len(ratios)} graphs of {nodes} nodes"
        )
        shown = f"{number(found.mean)} ± {number(found.mean - low)} ({min(ratios):.3f} to {max(ratios):.3f})"
        yield Check(part, says, low >= LEAST, None, shown, "order", explains=True)


@decides("yu2009-fig2.11")
@decides("yu2009-fig2.12")
def _on_200_nodes(_entry: Entry) -> Iterator[Check]:
    for part in ("2", "numbers"):
        yield from _as_much_in_all(part, 200)


@decides("yu2009-fig2.14")
@decides("yu2009-fig2.15")
@decides("yu2009-fig2.16")
def _on_600_nodes(_entry: Entry) -> Iterator[Check]:
    yield from _as_much_in_all("2", 600)


@decides("yu2009-claim2.7")
def _conclusions(_entry: Entry) -> Iterator[Check]:
    yield from _as_much_in_all("4", 600)
