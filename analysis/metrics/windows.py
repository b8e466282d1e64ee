# SPDX-License-Identifier: Apache-2.0
"""Congestion windows of single flows, as tcp_probe or the samples of their sockets have them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from analysis.arrays import np
from analysis.metrics.needs import EACH_WINDOW, WINDOW
from analysis.metrics.registry import metric
from analysis.metrics.run import RunRecords
from analysis.records import Columns

# Times for which `cwnd_packets` has a value: three decades, so that a run of any length has some tens.
TIMES_S = (*range(1, 10), *range(10, 100, 10), *range(100, 1000, 100), 1000)
MOST_FLOWS = 50


@metric("cwnd_max_packets", needs=(WINDOW,), unit="packets", label="Largest window", keyed="flow")
def cwnd_max_packets(run: RunRecords) -> dict[str, float | None]:
    """Largest congestion window of each flow after the warm-up, in packets of its MSS.

    Source: Afifi 2014 ch. 8 (largest cwnd of each algorithm); sockets.cwnd_packets, else tcp_info.cwnd_packets.
    """

    def largest(columns: Columns) -> float | None:
        inside = (columns["t_s"] >= run.window.start_s) & (columns["t_s"] <= run.window.end_s)
        return float(columns["cwnd_packets"][inside].max()) if inside.any() else None

    return _by_flow(run, largest)


@metric("falls_to_one_packet", needs=(WINDOW,), unit="1", label="Falls to one packet", keyed="flow")
def falls_to_one_packet(run: RunRecords) -> dict[str, float | None]:
    """How often each flow's congestion window falls to one packet from more than one, in its whole life.

    A timer that backs off finds the window there already; an algorithm that answers a timeout with more than one packet does not fall.
    Samples of sockets show it where they come more often than a round trip.

    Source: Afifi 2014 Figs 13 and 18 ("goes to one MSS"); sockets.cwnd_packets, else tcp_info.cwnd_packets.
    """

    def falls(columns: Columns) -> float:
        cwnd = columns["cwnd_packets"]
        return float(np.count_nonzero((cwnd[:-1] > 1) & (cwnd[1:] <= 1)))

    return _by_flow(run, falls)


@metric("cwnd_packets", needs=(WINDOW,), unit="packets", label="Window at a time", keyed="flow.seconds")
def cwnd_packets(run: RunRecords) -> dict[str, float | None]:
    """Congestion window of each flow at a time of the run, in packets: that of the last ACK or sample until then.

    Times are 1 to 9, 10 to 90 by 10, 100 to 900 by 100 and 1000 s from the run's start; a part is named by flow and seconds,
    `f1.500`. Null before a flow's first ACK and after its last. Of the first 50 flows.

    Source: Yu 2009 s4.6.3 (cwnd of the cross flows at 500 s); sockets.cwnd_packets, else tcp_info.cwnd_packets.
    """
    by_time: dict[str, float | None] = {}
    for flow in run.tcp_flows[:MOST_FLOWS]:
        columns = run.windows.get(flow["flow"])
        for time_s in TIMES_S:
            if time_s <= run.window.end_s:
                by_time[f"{flow['flow']}.{time_s}"] = None if columns is None else _window_at(columns, time_s)
    return by_time


def _by_flow(run: RunRecords, value: Callable[[Columns], float | None]) -> dict[str, float | None]:
    """A value of each flow's windows; null for a flow that has none."""
    windows = {flow["flow"]: run.windows.get(flow["flow"]) for flow in run.tcp_flows}
    return {name: None if columns is None else value(columns) for name, columns in windows.items()}


def _window_at(columns: Columns, time_s: float) -> float | None:
    times_s = columns["t_s"]
    place = int(np.searchsorted(times_s, time_s, side="right")) - 1
    ended = place == times_s.size - 1 and time_s > times_s[-1]
    return None if place < 0 or ended else float(columns["cwnd_packets"][place])


@metric(
    "slow_start_ssthresh_packets", needs=(EACH_WINDOW,), unit="packets", label="ssthresh of slow start", keyed="flow"
)
def slow_start_ssthresh_packets(run: RunRecords) -> dict[str, float | None]:
    """Slow-start threshold of each flow in force as its first slow start ends, in packets: an algorithm's estimate, where it makes one.

    Slow start ends where cwnd reaches ssthresh, which is then the value, unless an estimate changes ssthresh before cwnd grows
    any further (SPM's and PaSt's come a round-trip time after cwnd has stopped for them): then that is the value, at once if it
    is below cwnd. Slow start ends as well where an ACK that acknowledges nothing new, or a timeout, cuts ssthresh (a loss): then
    the value is the one from before the cut. Null where ssthresh was infinite until then, and where slow start does not end.

    Source: Yu 2009 s4.6.3, table 4-1 (estimated ssthresh), RFC 5681 s3.1; sockets.ssthresh_packets, sockets.cwnd_packets,
    sockets.snd_una.
    """
    by_flow: dict[str, float | None] = {}
    for flow in run.tcp_flows:
        columns = run.windows.get(flow["flow"])
        known = columns is not None and "ssthresh_packets" in columns
        by_flow[flow["flow"]] = _at_end_of_slow_start(columns) if columns is not None and known else None
    return by_flow


@metric("slow_start_ssthresh_mean_packets", needs=(EACH_WINDOW,), unit="packets", label="Mean ssthresh of slow start")
def slow_start_ssthresh_mean_packets(run: RunRecords) -> float | None:
    """Mean over the flows of `slow_start_ssthresh_packets`, in packets: of starts one after another it is one sample for each run.

    Flows that have none do not count; null where no flow has one.

    Source: Yu 2009 table 4-1 (average of a hundred starts).
    """
    known = [value for value in slow_start_ssthresh_packets(run).values() if value is not None]
    return float(np.mean(known)) if known else None


def _at_end_of_slow_start(columns: Columns) -> float | None:
    threshold = np.where(np.isnan(columns["ssthresh_packets"]), np.inf, columns["ssthresh_packets"])
    reached = _reached(columns["cwnd_packets"], threshold)
    # a row stands before its own ACK is taken up: what changed since the row before, that row's ACK changed
    stuck = np.diff(columns["snd_una"]) <= 0
    cut = np.flatnonzero((threshold[1:] < threshold[:-1]) & stuck) + 1
    ends = [*([] if reached is None else [reached]), *(int(place) for place in cut[:1])]
    if not ends:
        return None
    end = min(ends)
    value = float(threshold[end - 1] if cut.size and cut[0] == end else threshold[end])
    return value if np.isfinite(value) else None


def _reached(cwnd: Any, threshold: Any) -> int | None:
    """The row of the threshold that the window reaches for good, where it then grows further; an estimate that comes before counts.

    A window that falls meanwhile has not grown: PaSt's is what is left of its last train while the train's ACKs come in.
    """
    start = 0
    while True:
        places = np.flatnonzero(cwnd[start:] >= threshold[start:])
        if not places.size:
            return None
        end = start + int(places[0])
        grown = np.flatnonzero(cwnd[end + 1 :] > cwnd[end])
        changed = np.flatnonzero(threshold[end + 1 :] != threshold[end])
        if not changed.size or (grown.size and grown[0] < changed[0]):
            return end
        start = end + 1 + int(changed[0])
