# SPDX-License-Identifier: Apache-2.0
"""Afifi 2014, chapters 8 and 9 (Linux' own algorithms in DCE): what its figures say of all algorithms."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from analysis.arrays import np
from analysis.models.checks import Check, relation
from analysis.reproduction.afifi2014_traces import MOST, mean, of
from analysis.reproduction.intervals import within
from analysis.reproduction.measured import compares
from analysis.results import Run
from schema.catalogue import Entry


def _goodputs(runs: Sequence[Run]) -> dict[str, float]:
    found = {}
    for cca in dict.fromkeys(str(run.params.get("cca")) for run in runs):
        value = mean(of(runs, cca=cca), "goodput_mbps")
        if value is not None:
            found[cca] = value
    return found


@compares("afifi2014-fig32", "afifi2014-geo-one-way", "1", "2")
def _largest(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    largest = {cca: mean(of(runs, cca=cca), "cwnd_max_packets", "f1") or 0.0 for cca in _goodputs(runs)}
    others = {cca: value for cca, value in largest.items() if cca not in ("ftat", "hybla")}
    if len(others) == 12:
        shown = {cca: f"{value:.0f}" for cca, value in sorted(largest.items(), key=lambda pair: -pair[1])}
        yield relation(
            "1",
            "largest windows, packets: Hybla's is above ten times FTAT's",
            largest["hybla"] > 10 * largest["ftat"],
            shown,
        )
        yield relation(
            "2",
            "largest windows, packets: FTAT's is above all but Hybla's",
            largest["ftat"] > max(others.values()),
            shown,
        )


@compares("afifi2014-fig33", "afifi2014-geo-one-way", "1")
def _first_and_second(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    yield from _two_before_all(runs)


@compares("afifi2014-fig34", "afifi2014-geo-one-way", "1")
def _highest(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    yield from _two_before_all(runs)


def _two_before_all(runs: Sequence[Run]) -> Iterator[Check]:
    reached = _goodputs(runs)
    if len(reached) == 14:
        order = sorted(reached, key=lambda cca: -reached[cca])
        words = "rates, Mbit/s: FTAT and Hybla first, and most of the others below half of the second"
        apart = sum(reached[cca] < reached[order[1]] / 2 for cca in order[2:]) >= MOST
        yield relation(
            "1", words, order[:2] == ["ftat", "hybla"] and apart, {cca: f"{reached[cca]:.3f}" for cca in order}
        )


@compares("afifi2014-fig37", "afifi2014-fig37-short", "1")
def _slow_link(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    rates = _algorithms(of(runs, rate="2mbit"))
    others = {cca: value for cca, value in rates.items() if cca not in ("ftat", "hybla", "cubic")}
    if len(others) == 11:
        below = sum(value < 0.1 for value in others.values())
        shown = {cca: f"{value:.3f}" for cca, value in sorted(rates.items(), key=lambda pair: -pair[1])}
        yield relation("1", f"of the other eleven so many are below 100 kbit/s: {below}", below >= MOST, shown)


@compares("afifi2014-fig39", "afifi2014-fig37-short", "2")
def _fast_link(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    slow, fast = _algorithms(of(runs, rate="2mbit")), _algorithms(of(runs, rate="100mbit"))
    if len(fast) == 14 and len(slow) == 14:
        share = {cca: value / 5 for cca, value in fast.items()}
        few = sum(value < 0.2 for value in share.values())
        shown = {
            cca: f"{fast[cca]:.2f} ({fast[cca] / slow[cca]:.0f} times)"
            for cca in sorted(fast, key=lambda cca: -fast[cca])
        }
        words = f"Mbit/s of 5 on the fast link, times as much as on the slow one; below a fifth of their access: {few}"
        yield relation("2", words, few >= MOST, shown)


def _algorithms(runs: Sequence[Run]) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for run in runs:
        for cca, value in (run.metrics.get("algorithm_goodput_mbps") or {}).items():
            if isinstance(value, int | float):
                found.setdefault(cca, []).append(float(value))
    return {cca: float(np.mean(values)) for cca, values in found.items()}


@compares("afifi2014-fig41", "afifi2014-fig41-short", "3", "5")
def _short_path(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    rates = _algorithms([run for run in runs if run.counted])
    if len(rates) == 14:
        order = sorted(rates, key=lambda cca: -rates[cca])
        shown = {cca: f"{rates[cca]:.2f}" for cca in order}
        yield relation(
            "3", f"NewReno's place among fourteen: {order.index('reno') + 1}", order.index("reno") < 7, shown
        )
        yield relation(
            "5",
            "CUBIC gets more than the 0.278 Mbit/s that the thesis has for 100 ms",
            rates["cubic"] > 0.278,
            rates["cubic"],
        )


@compares("afifi2014-claim9", "afifi2014-claim9-short", "2")
def _what_is_left(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    beside: dict[tuple[str, int | None], float] = {}
    for run in runs:
        if run.counted:
            flows: Sequence[Mapping[str, Any]] = run.metrics.get("flows") or []
            four = sum(float(flow["goodput_mbps"] or 0) for flow in flows if flow["flow"] != "other")
            beside[str(run.params.get("cca")), run.seed] = four
    shares = [
        four / beside["reno", seed]
        for (cca, seed), four in beside.items()
        if cca == "ftat" and ("reno", seed) in beside
    ]
    words = "goodput of four NewReno flows beside FTAT over that beside a fifth of their own: at least 0.95 (ours)"
    yield within("2", words, shares, 0.95, math.inf)
