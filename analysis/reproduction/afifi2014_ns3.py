# SPDX-License-Identifier: Apache-2.0
"""Afifi 2014, chapter 7 (topologies one to four in ns-3): what its figures say along a run."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from analysis.arrays import np
from analysis.models.checks import Check, relation
from analysis.reproduction.afifi2014_traces import (
    CLOSE,
    PACKET_BYTES,
    STEADY_S,
    Trace,
    deviations,
    mean,
    of,
    order_of,
    series,
    spread,
)
from analysis.reproduction.intervals import within
from analysis.reproduction.measured import compares, explains
from analysis.results import Run
from analysis.statistics import Cell
from schema.catalogue import Entry

ON_S = 250.0
"""Periods of the reverse traffic in fig23-25.yml: away first."""


@compares("afifi2014-fig14", "afifi2014-fig13", "1", "2")
def _rtts_one(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    means = {cca: mean(of(runs, cca=cca), "rtt_mean_ms") for cca in ("reno", "westwood", "ftat")}
    known = [value for value in means.values() if value is not None]
    alike = len(known) == 3 and max(known) / min(known) - 1 <= CLOSE
    yield relation("1", "mean RTT, ms", alike, {cca: f"{value:.0f}" for cca, value in means.items() if value})
    yield order_of("2", "standard deviation of the RTT, ms", deviations(runs), ("ftat", "westwood", "reno"))


@compares("afifi2014-fig15", "afifi2014-fig13", "1")
def _linear(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    for cca in ("reno", "westwood"):
        apart = []
        for run in of(runs, cca=cca):
            delivered = series(run, "intervals.parquet", "delivered_bytes")
            t, total = np.array([t for t, _ in delivered]), np.cumsum([v for _, v in delivered])
            if len(t) > 2:
                line = np.polyval(np.polyfit(t, total, 1), t)
                apart.append(float(np.max(np.abs(total - line)) / total[-1]))
        if apart:
            words = f"{cca}: what was delivered over time is at most so far from a line, as a share of the total"
            yield relation("1", words, max(apart) <= CLOSE / 2, max(apart), "within 5 % (ours)")


def settled_top(trace: Trace, below: float) -> float | None:
    """The largest value from where it is first below a bound after its first fall; with an RTT of half a second a start takes long."""
    values = [value for _, value in trace]
    fallen = next((i for i, (a, b) in enumerate(itertools.pairwise(values)) if b < a), len(values))
    return max(itertools.dropwhile(lambda value: value >= below, values[fallen + 1 :]), default=None)


@compares("afifi2014-fig19", "afifi2014-fig18-short", "1", "numbers")
def _rtts_two(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    """By the smoothed RTT that the sender has at each time. A packet whose ACK waits for a second one takes 224 ms; the figure's
    values end at 60 ms, where smoothed ones do, and each ACK counts once in the means of rtt_mean_ms, so that a time in which little
    is sent counts little there. A fluctuation is a rise by more than a tenth (ours) from one sample to the next, 10 ms later."""
    mean_ms, rises, least_ms, largest_ms = (
        {cca: _of_smoothed(runs, cca, what) for cca in ("reno", "westwood", "ftat")}
        for what in (np.mean, _rises, np.min, np.max)
    )
    for cca, name in (("reno", "NewReno"), ("westwood", "Westwood+")):
        for words, values in (("mean, ms", mean_ms), ("number of fluctuations", rises)):
            less = [
                values[cca][seed] - values["ftat"][seed] for seed in sorted(values[cca].keys() & values["ftat"].keys())
            ]
            yield within("1", f"smoothed RTT over time, {words}, {name}'s less FTAT's: above 0", less, 0, math.inf)
    printed = (
        (29, "FTAT's mean", mean_ms["ftat"]),
        (25, "NewReno's least", least_ms["reno"]),
        (54, "NewReno's largest", largest_ms["reno"]),
        (60, "Westwood+'s largest", largest_ms["westwood"]),
    )
    for value, words, by_seed in printed:
        sample = list(by_seed.values())
        if sample:
            known = float(np.mean(sample))
            near = abs(known / value - 1) <= 2 * CLOSE
            yield Check(
                "numbers",
                f"smoothed RTT over time, {words}, mean over the seeds, ms",
                near,
                value,
                f"{known:.1f}",
                "value",
                "20 % (ours)",
            )


def _rises(values: Sequence[float]) -> int:
    return sum(later > (1 + CLOSE) * earlier for earlier, later in itertools.pairwise(values))


def _of_smoothed(runs: Sequence[Run], cca: str, what: Callable[[Sequence[float]], Any]) -> dict[int, float]:
    """Of each seed's run, in ms; the socket was sampled at even intervals."""
    found = {}
    for run in of(runs, cca=cca):
        known = [value / 1e3 for _, value in series(run, "tcp_info.parquet", "rtt_us") if value > 0]
        if known and run.seed is not None:
            found[run.seed] = float(what(known))
    return found


@compares("afifi2014-fig21", "afifi2014-fig18-short", "3")
def _share(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    """The flow under test and ten more share the link; the thesis prints no share, so the bound is calculated (catalogue, `how`)."""
    rate_mbps, flows = 100.0, 11
    own = [run.metrics.get("flows") or [] for run in of(runs, cca="reno")]
    got = [
        float(flow["goodput_mbps"]) for each in own for flow in each if flow["flow"] == "f1" and flow["goodput_mbps"]
    ]
    if got:
        words = f"NewReno's Mbit/s where an eleventh of the link would be {rate_mbps / flows:.2f}"
        yield within("3", words, got, -math.inf, rate_mbps / flows)


@compares("afifi2014-fig27", "afifi2014-fig27", "1", "2")
def _windows_four(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    yield from _stays_below(of(runs, cca="reno"), "")
    yield from _exceeds_early(of(runs, cca="ftat"), "")


def _stays_below(runs: Sequence[Run], changed: str) -> Iterator[Check]:
    """Part 1 of Fig 27, for runs of NewReno; changed: what is not as in the thesis."""
    largest = [
        top * PACKET_BYTES
        for run in runs
        if (top := settled_top(series(run, "tcp_info.parquet", "cwnd_packets"), 10000 / PACKET_BYTES)) is not None
    ]
    if largest:
        yield Check(
            "1",
            f"{changed}NewReno's largest window from where it is first below 10000 bytes after a loss, mean over seeds",
            float(np.mean(largest)) < 10000,
            10000,
            float(np.mean(largest)),
        )


def _exceeds_early(runs: Sequence[Run], changed: str) -> Iterator[Check]:
    """Part 2 of Fig 27, for runs of FTAT."""
    early = [
        max(v for t, v in series(run, "tcp_info.parquet", "cwnd_packets") if t <= 200) * PACKET_BYTES for run in runs
    ]
    if early:
        yield Check(
            "2",
            f"{changed}FTAT's largest window in 200 s, bytes, mean over seeds",
            float(np.mean(early)) > 600000,
            600000,
            float(np.mean(early)),
        )


@compares("afifi2014-fig28", "afifi2014-fig27", "1", "2", "numbers")
def _rtts_four(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    means = {cca: mean(of(runs, cca=cca), "rtt_mean_ms") for cca in ("reno", "westwood", "ftat")}
    reno, westwood, ftat = (means[cca] for cca in ("reno", "westwood", "ftat"))
    if reno is None or westwood is None or ftat is None:
        return
    swings = deviations(runs)
    yield relation(
        "1",
        "mean RTT of NewReno and of Westwood+, ms",
        abs(westwood / reno - 1) <= CLOSE / 2,
        [round(reno, 1), round(westwood, 1)],
        "within 5 % (ours)",
    )
    yield relation(
        "2",
        "standard deviation of the RTT, ms: FTAT's is the least",
        swings["ftat"] < min(swings["reno"], swings["westwood"]),
        {k: f"{v:.3g}" for k, v in swings.items()},
    )
    low = mean(of(runs, cca="reno"), "rtt_min_ms") or 0.0
    yield Check(
        "numbers",
        "least RTT and FTAT's mean, ms; the thesis' 54 and 57 times ten",
        abs(low / 540 - 1) <= CLOSE and abs(ftat / 570 - 1) <= CLOSE,
        [540, 570],
        [round(low), round(ftat)],
    )


def _periods(trace: Trace, *, on: bool) -> list[float]:
    return [value for t, value in trace if t > STEADY_S and (int(t // ON_S) % 2 == 1) is on]


def _swing(values: Sequence[float]) -> float:
    return spread(values) / float(np.mean(values)) if values else float("nan")


@compares("afifi2014-fig23", "afifi2014-fig23", "1", "2", "3", "4")
def _windows_three(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    swings: dict[str, tuple[float, float]] = {}
    for cca in ("reno", "westwood", "ftat"):
        traces = [series(run, "tcp_info.parquet", "cwnd_packets") for run in of(runs, cca=cca)]
        if not traces:
            return
        away, there = ([_swing(_periods(trace, on=on)) for trace in traces] for on in (False, True))
        swings[cca] = float(np.mean(away)), float(np.mean(there))
    shown = {cca: f"{away:.2f} and {there:.2f}" for cca, (away, there) in swings.items()}
    words = "coefficient of variation of the window without and with traffic the other way"
    yield relation("1", words, swings["reno"][1] > swings["reno"][0], shown)
    rises = []
    for run in of(runs, cca="westwood"):
        trace = series(run, "tcp_info.parquet", "cwnd_packets")
        during, after = ([v for t, v in trace if a <= t < b] for a, b in ((ON_S, 2 * ON_S), (2 * ON_S, 3 * ON_S)))
        rises.append(float(np.mean(after) / np.mean(during)))
    yield relation(
        "2",
        "Westwood+'s mean window after the traffic over that during it",
        min(rises) > 1,
        [round(r, 2) for r in rises],
    )
    light = abs(swings["ftat"][0] / swings["reno"][0] - 1) <= 1
    yield relation("3", words, swings["ftat"][1] > swings["ftat"][0] and light, shown)
    rates = {cca: mean(of(runs, cca=cca), "goodput_mbps") or 0.0 for cca in swings}
    yield relation(
        "4", "FTAT's goodput over NewReno's", rates["ftat"] / rates["reno"] <= 1 + CLOSE, rates["ftat"] / rates["reno"]
    )


@compares("afifi2014-fig24", "afifi2014-fig23", "1", "2")
def _rtts_three(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    means = {cca: mean(of(runs, cca=cca), "rtt_mean_ms") for cca in ("reno", "westwood")}
    reno, westwood = means["reno"], means["westwood"]
    if reno is not None and westwood is not None:
        yield relation(
            "1",
            "mean RTT of NewReno and of Westwood+, ms",
            abs(westwood / reno - 1) <= CLOSE,
            [round(reno, 1), round(westwood, 1)],
        )
    early = deviations(runs, STEADY_S, ON_S)
    if {"reno", "ftat"} <= set(early):
        words = "standard deviation of the RTT before the traffic, ms: FTAT's is below NewReno's"
        yield relation("2", words, early["ftat"] < early["reno"], {cca: f"{value:.3g}" for cca, value in early.items()})


@compares("afifi2014-fig25", "afifi2014-fig23", "1")
def _suffers_least(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    kept: dict[str, float] = {}
    for cca in ("reno", "westwood", "ftat"):
        found = []
        for run in of(runs, cca=cca):
            trace = series(run, "intervals.parquet", "delivered_bytes")
            found.append(float(np.mean(_periods(trace, on=True)) / np.mean(_periods(trace, on=False))))
        if found:
            kept[cca] = float(np.mean(found))
    if len(kept) == 3:
        shown = {cca: f"{value:.3f}" for cca, value in kept.items()}
        yield relation(
            "1",
            "throughput with traffic the other way over that without: NewReno's is the greatest",
            max(kept, key=lambda cca: kept[cca]) == "reno",
            shown,
        )


@explains("afifi2014-fig14", "afifi2014-fig13-every", "2")
def _rtts_one_with_every_packet_answered(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    yield from _part("2", "with an ACK for every packet, ", _rtts_one(entry, runs))


@explains("afifi2014-fig14", "afifi2014-fig13-narrow", "2")
def _rtts_one_where_the_window_fills_the_link(_entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    """The order of the thesis seed by seed."""
    seeds = {run.seed for run in runs if run.counted}
    found = [deviations([run for run in runs if run.seed == seed]) for seed in seeds]
    for more, less, words in (
        ("ftat", "westwood", "FTAT's RTT varies more than Westwood+'s"),
        ("ftat", "reno", "FTAT's RTT varies more than NewReno's"),
        ("westwood", "reno", "Westwood+'s RTT varies more than NewReno's"),
    ):
        apart = [of_seed[more] - of_seed[less] for of_seed in found if more in of_seed and less in of_seed]
        says = f"with an ACK for every packet and 2 Mbit/s, {words}: difference of the standard deviations, ms"
        yield within("2", says, apart, 0, math.inf)


@explains("afifi2014-fig18", "afifi2014-fig18-sack", "numbers", by_metrics=True)
def _windows_two_with_sack(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    tables = entry.published.numbers
    assert isinstance(tables, list)
    value = dict(tables[0]["rows"])["FTAT"]
    largest = [v * PACKET_BYTES for v in Cell({}, tuple(of(runs, cca="ftat"))).values("cwnd_max_packets.f1")]
    if largest:
        says = "with SACK, in 100 s, FTAT's largest window, bytes; within 50 %, as without"
        yield within("numbers", says, largest, 0.5 * value, 1.5 * value, "value", value)


@explains("afifi2014-fig27", "afifi2014-fig27-per-ack", "1")
def _windows_four_of_a_newreno_that_counts_acks(_entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    yield from _stays_below([run for run in runs if run.counted], "growing by ACKs, ")


@explains("afifi2014-fig27", "afifi2014-fig27-sack", "2")
def _windows_four_with_sack(_entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    yield from _exceeds_early(of(runs, cca="ftat"), "with SACK, ")


@explains("afifi2014-fig23", "afifi2014-fig23-sack", "3")
def _windows_three_with_sack(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    yield from _part("3", "with SACK, ", _windows_three(entry, runs))


@explains("afifi2014-fig24", "afifi2014-fig23-sack", "2")
def _rtts_three_with_sack(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    yield from _part("2", "with SACK, ", _rtts_three(entry, runs))


def _part(part: str, changed: str, checks: Iterator[Check]) -> Iterator[Check]:
    """What the same comparison says of one part in an experiment with one thing changed."""
    yield from (dataclasses.replace(check, says=changed + check.says) for check in checks if check.part == part)
