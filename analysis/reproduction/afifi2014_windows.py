# SPDX-License-Identifier: Apache-2.0
"""Afifi 2014, chapters 2 and 3: the definitions of its algorithms, held against the windows of single flows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from analysis.arrays import np
from analysis.models.afifi2014 import falls_at_once
from analysis.models.checks import Check, relation
from analysis.reproduction.afifi2014_traces import CLOSE, STEADY_S, Trace, mean, of, rounds, spread
from analysis.reproduction.measured import compares, windows
from analysis.results import Run
from schema.catalogue import Entry


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
