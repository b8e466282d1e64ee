# SPDX-License-Identifier: Apache-2.0
"""Jain's index of the flows' goodputs, over the run and in windows of it."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.arrays import np
from analysis.metrics.needs import DELIVERED, SERIES
from analysis.metrics.rates import binned_mbps, mean_mbps
from analysis.metrics.registry import metric
from analysis.metrics.run import RunRecords, Window

# Kato 2012 s5.2: throughput is taken as five-second averages.
JAIN_WINDOW_S = 5.0


def jain(shares: Sequence[float]) -> float | None:
    """(Σx)² / (n·Σx²): 1 where all are equal, 1/n where one has everything, None where nobody has anything.

    Kato 2012 eq 5.2, after Jain 1991.
    """
    values = np.asarray(shares, dtype=np.float64)
    if values.size == 0 or not values.max() > 0:
        return None
    values = values / values.max()  # squares of very small or large shares stay in range
    return float(values.sum() ** 2 / (values.size * np.square(values).sum()))


def common_window(run: RunRecords) -> Window:
    """The part of the window in which every flow is there: Kato's "interval over fixed link state"."""
    starts_s = [value for flow in run.tcp_flows if (value := flow.get("start_s")) is not None]
    ends_s = [value for flow in run.tcp_flows if (value := flow.get("end_s")) is not None]
    return Window(max([run.window.start_s, *starts_s]), min([run.window.end_s, *ends_s]))


def jain_series(run: RunRecords, width_s: float = JAIN_WINDOW_S) -> list[float | None]:
    """The index in consecutive windows of the common part; a flow without a row there has a share of 0."""
    window = common_window(run)
    count = max(0, int(window.length_s / width_s + 1e-6))
    shares = []
    for flow in run.tcp_flows:
        columns = run.intervals.get(flow["flow"])
        rates = binned_mbps(columns, "delivered_bytes", window, width_s) if columns is not None else np.zeros(0)
        shares.append(rates if rates.size else np.zeros(count))
    return [jain([float(rates[index]) for rates in shares]) for index in range(count)]


@metric("jain_index", needs=(DELIVERED,), unit="1", label="Jain index", better="higher")
def jain_index(run: RunRecords) -> float | None:
    """Jain's fairness index of the flows' mean goodputs while all of them are there.

    A flow that moved nothing counts as 0.

    Source: Kato 2012 eqs 5.1-5.2, Ho 2008 tables 5.1-5.8; intervals.delivered_bytes.
    """
    window = common_window(run)
    if window.length_s <= 0:
        return None
    goodputs = [mean_mbps(run.intervals.get(flow["flow"]), "delivered_bytes", window) for flow in run.tcp_flows]
    return jain([goodput or 0.0 for goodput in goodputs])


@metric("jain_5s_mean", needs=(SERIES,), unit="1", label="Jain 5 s mean", better="higher")
def jain_5s_mean(run: RunRecords) -> float | None:
    """Mean of Jain's index over consecutive 5-second windows in which all flows are there.

    Source: Kato 2012 s5.2 (five-second averages); intervals.delivered_bytes.
    """
    known = [value for value in jain_series(run) if value is not None]
    return sum(known) / len(known) if known else None


@metric("jain_5s_min", needs=(SERIES,), unit="1", label="Jain 5 s min", better="higher")
def jain_5s_min(run: RunRecords) -> float | None:
    """Smallest Jain's index of any 5-second window in which all flows are there.

    Source: Kato 2012 s5.2 (five-second averages); intervals.delivered_bytes.
    """
    return min((value for value in jain_series(run) if value is not None), default=None)
