# SPDX-License-Identifier: Apache-2.0
"""How a flow gets to its rate and how it keeps it: convergence time and smoothness."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from analysis.metrics.rates import binned_mbps
from analysis.metrics.registry import metric
from analysis.metrics.run import RunRecords, Window
from analysis.records import Columns

# Convergence: the rate is smoothed over this many BaseRTTs, and the stable band is widened by this share of its mean.
SMOOTHING_BASERRTS = 5
BAND_SLACK = 0.05
# A steady rise enters its own widened band at 0.46 of its life; what gets there after this share may be one.
LATEST_ENTRY = 0.4
# Time scales of the coefficient of variation, in seconds.
TIME_SCALES_S = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


def convergence_baserrts(columns: Columns, life: Window, base_rtt_s: float) -> float | None:
    """BaseRTTs until a flow's rate enters, for good, the band in which it stays during the last half of its life.

    The band is what makes a saw-tooth count as stable: Ho speaks of "a new stable state or period". A flow
    that enters it only as the last half comes near is still on its way: None.
    """
    width_s = float(np.median(columns["width_s"])) if columns["width_s"].size else 0.0
    if width_s <= 0 or base_rtt_s <= 0:
        return None
    rates = binned_mbps(columns, "delivered_bytes", life, width_s)
    span = max(1, round(SMOOTHING_BASERRTS * base_rtt_s / width_s))
    if rates.size < 4 * span:
        return None
    smooth = np.convolve(rates, np.full(span, 1 / span), mode="valid")  # smooth[i]: bins i … i+span-1
    half = smooth.size // 2
    last = smooth[half:]
    slack = BAND_SLACK * float(last.mean())
    if last.mean() <= 0:
        return None
    outside = np.flatnonzero((smooth[:half] < last.min() - slack) | (smooth[:half] > last.max() + slack))
    first_inside = int(outside[-1]) + 1 if outside.size else 0
    if first_inside >= LATEST_ENTRY * smooth.size:
        return None
    # The mean of these bins is inside; its middle is when the rate itself was.
    return (first_inside + (span - 1) / 2 if outside.size else 0.0) * width_s / base_rtt_s


def _life(run: RunRecords, flow: Mapping[str, Any]) -> Window:
    start_s, end_s = flow.get("start_s"), flow.get("end_s")
    return Window(start_s or 0.0, min(run.window.end_s, run.window.end_s if end_s is None else end_s))


@metric("convergence_baserrts", unit="BaseRTT", label="Convergence", better="lower")
def convergence_time(run: RunRecords) -> float | None:
    """Smallest RTTs from a flow's start until its goodput is in its stable band for good; the slowest flow's.

    The band is what the goodput, smoothed over 5 BaseRTTs, spans in the last half of the flow's life, widened by 5 % of
    its mean. Null where one of the flows does not get there in the first 40 % of its life.
    Source: Ho 2008 s5.2.2, figures 5.5 and 5.8; intervals.delivered_bytes, flows.rtt_min_ms.
    """
    times: list[float] = []
    for flow in run.tcp_flows:
        columns, base_ms = run.intervals.get(flow["flow"]), flow.get("rtt_min_ms")
        time = convergence_baserrts(columns, _life(run, flow), base_ms / 1e3) if columns and base_ms else None
        if time is None:
            return None
        times.append(time)
    return max(times, default=None)


def variation(rates: np.ndarray[Any, np.dtype[np.float64]]) -> float | None:
    """Standard deviation over mean, None below two values or at rest."""
    if rates.size < 2 or not rates.mean() > 0:
        return None
    return float(rates.std() / rates.mean())


@metric("smoothness_cv", unit="1", label="Smoothness (CV)", better="lower", keyed="seconds")
def smoothness_cv(run: RunRecords) -> dict[str, float | None]:
    """Coefficient of variation of a flow's goodput in bins of a time scale, mean of the flows; 0 is perfectly smooth.

    Time scales: 0.2, 0.5, 1, 2, 5 and 10 s; those finer than the intervals of the records are null.
    Source: Kato 2012 s5.1.3 (smoothness; the measure after Floyd et al. 2000); intervals.delivered_bytes.
    """
    found: dict[str, float | None] = {}
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
        found[f"{scale_s:g}"] = sum(values) / len(values) if values else None
    return found
