# SPDX-License-Identifier: Apache-2.0
"""Afifi 2014: what its figures and definitions say along a run, held against the runs' traces."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from analysis import records
from analysis.arrays import np
from analysis.models.afifi2014 import falls_at_once
from analysis.models.checks import Check, relation
from analysis.reproduction.intervals import within
from analysis.reproduction.measured import compares, explains, windows
from analysis.results import Run
from analysis.statistics import estimate
from schema.catalogue import Entry

Trace = list[tuple[float, float]]
"""(s, value)"""
CLOSE = 0.10
"""How far apart "alike" and "about" may be: ours."""
STEADY_S = 5.0
"""Start-up and its first recovery are over."""
PACKET_BYTES = 536
MOST = 8
"""Of eleven algorithms: "most" (catalogue)."""


def of(runs: Sequence[Run], **params: str) -> list[Run]:
    """The runs that count with these parameters."""
    return [run for run in runs if run.counted and all(str(run.params.get(k)) == v for k, v in params.items())]


def mean(runs: Sequence[Run], metric: str, part: str = "") -> float | None:
    """Over the runs that have it."""
    found = [run.metrics.get(metric) for run in runs]
    numbers = [one.get(part) if isinstance(one, Mapping) else one for one in found]
    known = estimate([float(number) for number in numbers if isinstance(number, int | float)])
    return known.mean if known else None


def series(run: Run, file: str, column: str, flow: str = "f1") -> Trace:
    """A column of a flow's records over time, without its gaps."""
    columns = records.collect(run.path / "records" / file, ["flow"], ["t_s", column]).get((flow,))
    if columns is None:
        return []
    return [(float(t), float(v)) for t, v in zip(columns["t_s"], columns[column], strict=True) if not np.isnan(v)]


def rounds(run: Run) -> list[tuple[float, float, float]]:
    """(s, window, threshold) at the beginning of each round trip: when all that was sent at the last one's is acknowledged."""
    names = ["t_s", "cwnd_packets", "ssthresh_packets", "snd_nxt", "snd_una"]
    columns = next(iter(records.collect(run.path / "records" / "sockets.parquet", ["flow"], names).values()))
    found, end = [], -1.0
    for t, cwnd, ssthresh, nxt, una in zip(*(columns[name] for name in names), strict=True):
        if una >= end:
            found.append((float(t), float(cwnd), float(ssthresh)))
            end = float(nxt)
    return found


def spread(values: Sequence[float]) -> float:
    return float(np.std(values)) if values else float("nan")


@compares("afifi2014-tab1", "afifi2014-windows", "1")
def _slow_start(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    for run in of(runs, cca="reno"):
        begun = [cwnd for _, cwnd, ssthresh in rounds(run) if np.isnan(ssthresh)]
        doubled = begun[1:]  # the first is the handshake's
        ratios = [b / a for a, b in itertools.pairwise(doubled)]
        words = "windows of Linux' reno by round trips until the first loss"
        yield relation("1", words, len(ratios) >= 3 and all(abs(r / 2 - 1) <= CLOSE for r in ratios), begun)


@compares("afifi2014-tab2", "afifi2014-windows", "1")
def _avoidance(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    for run in of(runs, cca="reno"):
        later = [(cwnd, ssthresh) for t, cwnd, ssthresh in rounds(run) if t > STEADY_S]
        steps = [b - a for (a, ta), (b, tb) in itertools.pairwise(later) if ta == tb and b >= a >= ta]
        words = f"mean growth of Linux' reno over {len(steps)} round trips of congestion avoidance, packets"
        yield relation("1", words, abs(float(np.mean(steps)) - 1) <= CLOSE, float(np.mean(steps)))


@compares("afifi2014-tab3", "afifi2014-windows", "1")
def _recovery(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    for run in of(runs, cca="reno"):
        teeth = _teeth([(t, w) for t, w in windows(run) if t > STEADY_S])
        halves = [low / high for high, low in teeth]
        words = f"window after a recovery over that before it, of {len(teeth)} recoveries of Linux' reno"
        yield relation(
            "1",
            words,
            bool(halves) and all(abs(2 * h - 1) <= CLOSE for h in halves),
            f"{min(halves):.3f} to {max(halves):.3f}",
        )
        jumps = falls_at_once([w for _, w in windows(run)])
        words = "steps in which the window falls to its threshold and three packets as a recovery begins"
        why = "Linux lets the window fall to the threshold in the course of a recovery (proportional rate reduction)"
        yield Check("1", words, jumps >= len(teeth) > 0, len(teeth), jumps, "order", why)


def _teeth(trace: Trace) -> list[tuple[float, float]]:
    """(window at which a fall begins, at which it ends), of falls by more than a tenth."""
    found: list[tuple[float, float]] = []
    high = low = trace[0][1] if trace else 0.0
    for (_, a), (_, b) in itertools.pairwise(trace):
        if b < a:
            low = b
        elif b > a:
            if low < 0.9 * high:
                found.append((high, low))
            high = low = b
    return found


@compares("afifi2014-tab4", "afifi2014-windows", "1")
def _westwood(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    for run in of(runs, cca="westwood"):
        goodput, rtt = mean([run], "goodput_mbps"), mean([run], "rtt_min_ms")
        falls = [low for _, low in _teeth([(t, w) for t, w in windows(run) if t > STEADY_S])]
        if goodput is None or rtt is None or not falls:
            continue
        product = goodput * 1e6 * rtt / 1e3 / (8 * 1448)
        words = "windows of Linux' westwood after losses; beside them delivered rate x least RTT, packets"
        yield Check(
            "1",
            words,
            all(abs(w / product - 1) <= CLOSE for w in falls),
            round(product, 1),
            sorted(set(falls)),
            "order",
            "within a tenth (ours)",
        )


@compares("afifi2014-fig7", "afifi2014-windows", "1")
def _saw_tooth(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    for run in of(runs, cca="reno"):
        teeth = _teeth([(t, w) for t, w in windows(run) if t > STEADY_S])
        words = "teeth in a minute, and the windows that they fall from and to"
        regular = len(teeth) >= 3 and spread([h for h, _ in teeth]) <= CLOSE * float(np.mean([h for h, _ in teeth]))
        yield relation("1", words, regular, [len(teeth), *teeth[0]] if teeth else None)


@compares("afifi2014-fig6", "afifi2014-windows", "1", "2")
def _measured_windows(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    """A measured window follows a round trip in which the window stood still; growth is two packets an ACK at most."""
    for part, loss in (("1", "0%"), ("2", "2%")):
        for run in of(runs, cca="ftat", loss=loss):
            steps = [b - a for (_, a), (t, b) in itertools.pairwise(windows(run)) if t > STEADY_S or part == "2"]
            down, up = sum(step < 0 for step in steps), sum(step > 2 for step in steps)
            lost = "by a queue, after the start" if part == "1" else "at random"
            words = f"windows that FTAT set lower and higher after losses {lost}"
            yield relation(part, words, down > 0 and (up == 0 if part == "1" else up > 0), [down, up])


@compares("afifi2014-claim3.5.1", "afifi2014-transfers", "1")
def _transfers(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    took: dict[str, dict[str, float]] = {}
    for run in runs:
        if run.counted:
            flows: Sequence[Mapping[str, Any]] = run.metrics.get("flows") or []
            took[str(run.params.get("cca"))] = {
                str(f["flow"]): float(f["completion_s"]) for f in flows if f.get("completion_s")
            }
    ftat, reno = took.get("ftat", {}), took.get("reno", {})
    if ftat and reno:
        shorter = all(ftat[name] < reno[name] for name in reno)
        words = "seconds that transfers take with FTAT and with NewReno"
        yield relation("1", words, shorter, {name: f"{ftat[name]:.2f} and {reno[name]:.2f}" for name in reno})


@compares("afifi2014-fig14", "afifi2014-fig13", "1", "2")
def _rtts_one(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    means = {cca: mean(of(runs, cca=cca), "rtt_mean_ms") for cca in ("reno", "westwood", "ftat")}
    known = [value for value in means.values() if value is not None]
    alike = len(known) == 3 and max(known) / min(known) - 1 <= CLOSE
    yield relation("1", "mean RTT, ms", alike, {cca: f"{value:.0f}" for cca, value in means.items() if value})
    yield _order("2", "standard deviation of the RTT, ms", _deviations(runs), ("ftat", "westwood", "reno"))


def _deviations(runs: Sequence[Run], start_s: float = 0.0, end_s: float = float("inf")) -> dict[str, float]:
    found: dict[str, list[float]] = {}
    for run in runs:
        if run.counted:
            rtts = [v / 1e3 for t, v in series(run, "acks.parquet", "rtt_us") if start_s <= t < end_s]
            found.setdefault(str(run.params.get("cca")), []).append(spread(rtts))
    return {cca: float(np.mean(values)) for cca, values in found.items()}


def _order(part: str, words: str, values: Mapping[str, float], order: Sequence[str]) -> Check:
    """The greatest first."""
    listed = [values.get(name, float("nan")) for name in order]
    holds = all(a > b for a, b in itertools.pairwise(listed))
    return relation(
        part, f"{words}: {' > '.join(order)}", holds, {name: f"{values.get(name, float('nan')):.3g}" for name in order}
    )


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
    largest = [
        top * PACKET_BYTES
        for run in of(runs, cca="reno")
        if (top := settled_top(series(run, "tcp_info.parquet", "cwnd_packets"), 10000 / PACKET_BYTES)) is not None
    ]
    if largest:
        yield Check(
            "1",
            "NewReno's largest window once its start is over, from where it is first below 10000 bytes after a loss, mean over seeds",
            float(np.mean(largest)) < 10000,
            10000,
            float(np.mean(largest)),
        )
    early = [
        max(v for t, v in series(run, "tcp_info.parquet", "cwnd_packets") if t <= 200) * PACKET_BYTES
        for run in of(runs, cca="ftat")
    ]
    if early:
        yield Check(
            "2",
            "FTAT's largest window in 200 s, bytes, mean over seeds",
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
    deviations = _deviations(runs)
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
        deviations["ftat"] < min(deviations["reno"], deviations["westwood"]),
        {k: f"{v:.3g}" for k, v in deviations.items()},
    )
    low = mean(of(runs, cca="reno"), "rtt_min_ms") or 0.0
    yield Check(
        "numbers",
        "least RTT and FTAT's mean, ms; the thesis' 54 and 57 times ten",
        abs(low / 540 - 1) <= CLOSE and abs(ftat / 570 - 1) <= CLOSE,
        [540, 570],
        [round(low), round(ftat)],
    )


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


ON_S = 250.0
"""Periods of the reverse traffic in fig23-25.yml: away first."""


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
    early = _deviations(runs, STEADY_S, ON_S)
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


@explains("afifi2014-fig23", "afifi2014-fig23-sack", "3")
def _windows_three_with_sack(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    yield from _part("3", "with SACK, ", _windows_three(entry, runs))


@explains("afifi2014-fig24", "afifi2014-fig23-sack", "2")
def _rtts_three_with_sack(entry: Entry, runs: Sequence[Run]) -> Iterator[Check]:
    yield from _part("2", "with SACK, ", _rtts_three(entry, runs))


def _part(part: str, changed: str, checks: Iterator[Check]) -> Iterator[Check]:
    """What the same comparison says of one part in an experiment with one thing changed."""
    yield from (dataclasses.replace(check, says=changed + check.says) for check in checks if check.part == part)
