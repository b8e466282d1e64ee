# SPDX-License-Identifier: Apache-2.0
"""Convergence time and smoothness of a flow's rate, and how soon its window adapts."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from analysis.arrays import np
from analysis.metrics.needs import RTT, SERIES, WINDOW
from analysis.metrics.rates import binned_mbps
from analysis.metrics.registry import metric
from analysis.metrics.run import RunRecords, Window
from analysis.metrics.traffic import data_start_s
from analysis.records import Columns, Floats

# Rates are smoothed over this many BaseRTTs, about what a window of one packet more or less makes of them.
SMOOTHING_BASERRTS = 5
LEAST_SPANS = 4
"""Of so many times the smoothing is the shortest time of which it can be said whether a flow settled in it."""
# What is within this share of the rate is that rate.
BAND_SLACK = 0.05
# The top of a period is what a twentieth of its rates exceed, and is reached within this share of it.
TOP_QUANTILE, TOP_SLACK = 0.95, 0.01
# The stable period is looked for in this last part of a life, and that part counts where it is reached before the limit.
# A steady rise enters the band of its own last half at 0.46, of its last quarter at 0.70 of its life: it never counts.
STABLE_PARTS = ((1 / 2, 0.40), (1 / 4, 0.65))
# Time scales of the coefficient of variation, in seconds.
TIME_SCALES_S = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


def settling_bins(smooth: Floats) -> float | None:
    """Bins until a smoothed rate has reached its stable state or period for good; None where it does not.

    From above that is where it enters the band of the period, from below where it first climbs to the period's top: a saw-tooth's band
    begins where its cuts end, which a first climb passes on its way.
    """
    for part, limit in STABLE_PARTS:
        first = smooth.size - int(smooth.size * part)
        last = smooth[first:]
        if last.size < 4 or last.mean() <= 0:
            return None
        slack = BAND_SLACK * float(last.mean())
        low, high = float(last.min()) - slack, float(last.max()) + slack
        outside = np.flatnonzero((smooth[:first] < low) | (smooth[:first] > high))
        reached = int(outside[-1]) + 1 if outside.size else 0
        if not (reached and smooth[reached - 1] > high):
            top = float(np.quantile(last, TOP_QUANTILE)) * (1 - TOP_SLACK)
            reached += int(np.flatnonzero(smooth[reached:] >= top)[0])
        if reached < limit * smooth.size:
            return float(reached)
    return None


def convergence_baserrts(columns: Columns, life: Window, base_rtt_s: float) -> float | None:
    """BaseRTTs from the start of a life until the goodput has reached its stable state or period for good."""
    width_s = float(np.median(columns["width_s"])) if columns["width_s"].size else 0.0
    if width_s <= 0 or base_rtt_s <= 0:
        return None
    return _settled_baserrts(binned_mbps(columns, "delivered_bytes", life, width_s), width_s, base_rtt_s)


def _settled_baserrts(values: Floats, width_s: float, base_rtt_s: float) -> float | None:
    """BaseRTTs until values of bins of a width have settled."""
    span = max(1, round(SMOOTHING_BASERRTS * base_rtt_s / width_s))
    if values.size < LEAST_SPANS * span:
        return None
    smooth = np.convolve(values, np.full(span, 1 / span), mode="valid")  # smooth[i]: bins i … i+span-1
    first = settling_bins(smooth)
    # the mean of these bins is there; its middle is when the value itself was
    return None if first is None else (first + (span - 1) / 2 if first else 0.0) * width_s / base_rtt_s


def _life(run: RunRecords, flow: Mapping[str, Any]) -> Window:
    return _until_its_end(run, flow, data_start_s(flow))


def _until_its_end(run: RunRecords, flow: Mapping[str, Any], start_s: float | None) -> Window:
    end_s = flow.get("end_s")
    return Window(start_s or 0.0, min(run.window.end_s, run.window.end_s if end_s is None else end_s))


def _first_data_s(run: RunRecords, flow: Mapping[str, Any], columns: Columns) -> float | None:
    """Where only samples say what was acknowledged: a round trip before the first of them that has some, and not before the start."""
    start_s: float | None = data_start_s(flow)
    moved = np.flatnonzero(columns["delivered_bytes"] > 0)
    if flow.get("data_start_s") is not None or start_s is None or not moved.size:
        return start_s
    first_s = float(columns["t_s"][moved[0]] + columns["width_s"][moved[0]])
    return max(start_s, first_s - (flow.get("rtt_min_ms") or 0.0) / 1e3)


@metric(
    "convergence_baserrts",
    needs=(SERIES, RTT),
    unit="BaseRTT",
    label="Convergence",
    better="lower",
)
def convergence_time(run: RunRecords) -> float | None:
    """BaseRTTs (smallest RTTs) from a flow's first data until it reaches a new stable state or period; the slowest flow's.

    The stable period is the band that the goodput, smoothed over 5 BaseRTTs, spans in the last half of the flow's life (its last quarter,
    where the flow arrives late), 5 % wider. A flow that comes from above reaches it when it enters the band for the last time, one that
    comes from below when it has then climbed to its top (within 1 % of what a twentieth of the rates exceed), which is the available
    bandwidth. Null where one of the flows is still on its way at two thirds of its life.
    Source: Ho 2008 s5.2.2 ("how many BaseRTTs are required to reach a new stable state or period"), figures 5.5 and 5.8;
    intervals.delivered_bytes, flows.rtt_min_ms.
    """
    times: list[float] = []
    for flow in run.tcp_flows:
        columns, base_ms = run.intervals.get(flow["flow"]), flow.get("rtt_min_ms")
        if not columns or not base_ms:
            return None
        life = _until_its_end(run, flow, _first_data_s(run, flow, columns))
        time = convergence_baserrts(columns, life, base_ms / 1e3)
        if time is None:
            return None
        times.append(time)
    return max(times, default=None)


@metric(
    "adaptation_rtts",
    needs=(WINDOW, RTT),
    unit="RTT",
    label="Adaptation",
    better="lower",
    keyed="change",
)
def adaptation_rtts(run: RunRecords) -> dict[str, float | None]:
    """Round trips that the slowest flow needs to adjust its window to each change of the available bandwidth, by its number from 1.

    Changes are the times at which constant-rate traffic begins and ends. From one to the next, the time until the
    flow's congestion window has reached its new stable state or period as the goodput does in convergence_baserrts, over its mean RTT. A
    flow that is still on its way when the next change comes counts with all BaseRTTs between the two, more than any that settles has.
    Source: Ho 2008 s5.2 ("to adjust its congestion window size") and s5.2.3, figures 5.11 and 5.12; sockets.cwnd_packets, else
    tcp_info.cwnd_packets, flows.rtt_mean_ms.
    """
    edges = [*(t for t in run.changes_s if 0 < t < run.window.end_s), run.window.end_s]
    parts = [Window(start_s, end_s) for start_s, end_s in itertools.pairwise(edges)]
    return {str(number): _slowest(run, part) for number, part in enumerate(parts, 1)}


def _slowest(run: RunRecords, part: Window) -> float | None:
    times: list[float] = []
    for flow in run.tcp_flows:
        columns, base_ms, mean_ms = run.windows.get(flow["flow"]), flow.get("rtt_min_ms"), flow.get("rtt_mean_ms")
        life = _life(run, flow)
        if life.start_s > part.start_s or columns is None or not columns["t_s"].size or not base_ms or not mean_ms:
            return None
        width_s = base_ms / 1e3
        at_s = np.arange(part.start_s, min(part.end_s, life.end_s), width_s)
        held = np.maximum(np.searchsorted(columns["t_s"], at_s, side="right") - 1, 0)
        if at_s.size < LEAST_SPANS * SMOOTHING_BASERRTS:
            return None
        time = _settled_baserrts(np.asarray(columns["cwnd_packets"], dtype=float)[held], width_s, width_s)
        times.append(float(at_s.size) if time is None else time * base_ms / mean_ms)
    return max(times, default=None)


def variation(rates: np.ndarray[Any, np.dtype[np.float64]]) -> float | None:
    """Standard deviation over mean, None below two values or at rest."""
    if rates.size < 2 or not rates.mean() > 0:
        return None
    return float(rates.std() / rates.mean())


@metric("smoothness_cv", needs=(SERIES,), unit="1", label="Smoothness (CV)", better="lower", keyed="seconds")
def smoothness_cv(run: RunRecords) -> dict[str, float | None]:
    """Coefficient of variation of a flow's goodput in bins of a time scale, mean of the flows; 0 is perfectly smooth.

    Time scales: 0.2, 0.5, 1, 2, 5 and 10 s; those finer than the intervals of the records are null.
    Source: Kato 2012 s5.1.3 (smoothness; the measure after Floyd et al. 2000); intervals.delivered_bytes.
    """
    by_scale: dict[str, float | None] = {}
    for scale_s in TIME_SCALES_S:
        values: list[float] = []
        for flow in run.tcp_flows:
            columns = run.intervals.get(flow["flow"])
            if columns is None or columns["width_s"].size == 0 or scale_s < np.median(columns["width_s"]) * 0.999:
                continue
            life = _life(run, flow)
            window = Window(max(life.start_s, run.window.start_s), life.end_s)
            value = variation(binned_mbps(columns, "delivered_bytes", window, scale_s))
            if value is not None:
                values.append(value)
        by_scale[f"{scale_s:g}"] = sum(values) / len(values) if values else None
    return by_scale
