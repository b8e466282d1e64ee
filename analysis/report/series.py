# SPDX-License-Identifier: Apache-2.0
"""Time series for the figures: cut into equal buckets, each with its smallest and largest value.

A bucket is about as wide as a pixel, so nothing that could be seen is lost: a single dropped sample or a spike of one
packet stays in the extremes, which a mean or every n-th sample would hide.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis import records
from analysis.arrays import np
from analysis.errors import RecordsError
from analysis.metrics.fairness import JAIN_WINDOW_S, common_window, jain_series
from analysis.metrics.run import INTERVAL_COLUMNS, RunRecords, Window
from analysis.records import Floats, Key
from analysis.results import Run

# The whole report's series share this many values (about 5 bytes each), so that one of many flows still opens.
VALUE_BUDGET = 800_000
FEWEST_BUCKETS, MOST_BUCKETS = 120, 1200
MOST_EXTREMES = 100_000_000
"""Of one record: 80 000 flows in the fewest buckets. Records with more are not those of the flows that run.json tells of."""
JAIN = "jain"
RTT_CDF = "rtt-cdf"
QUANTILES = np.linspace(0.0, 1.0, 201)


@dataclass(frozen=True)
class Figure:
    """A kind of figure against time: which column of which records, and in what unit it is drawn."""

    name: str
    title: str
    unit: str
    file: str
    column: str
    scale: float = 1.0
    second: str = ""  # a second column drawn dashed with it
    second_label: str = ""
    from_zero: bool = True
    about: str = ""


FIGURES = (
    Figure("throughput", "Throughput", "Mbit/s", "intervals", "throughput_mbps",
           about="Wire bytes sent, headers and retransmissions included, per interval of the records."),
    Figure("goodput", "Goodput", "Mbit/s", "intervals", "goodput_mbps",
           about="Payload that reached the receiver for the first time, per interval of the records."),
    Figure("cwnd", "Congestion window", "packets", "sockets", "cwnd_packets", second="ssthresh_packets",
           second_label="ssthresh",
           about="At every ACK; dashed: slow-start threshold, once it is finite, as the kernel's tcp_probe tells it "
           "(outside recovery at least three quarters of the window)."),
    Figure("rtt", "Round-trip time", "ms", "acks", "rtt_us", 1e-3, from_zero=False,
           about="Every unambiguous sample from the captured packets."),
    Figure("queue", "Queue at the bottleneck", "packets", "queues", "backlog_packets",
           about="Sampled backlog of the bottleneck's queue."),
    Figure(JAIN, "Fairness", "Jain index", "", "",
           about=f"Of the flows' goodputs in windows of {JAIN_WINDOW_S:g} s, while all flows are there."),
    Figure("in_flight", "In flight", "kB", "sockets", "in_flight_bytes", 1e-3,
           about="Bytes sent and not yet acknowledged."),
    Figure("sequence", "Sequence number", "MB", "sockets", "snd_una", 1e-6, about="Bytes acknowledged in order."),
)  # fmt: skip


def run_series(run: Run, buckets: int, duration_s: float) -> list[dict[str, Any]]:
    """The series of one run, as the page's script reads them: {figure, flow, lo, hi?, lo2?, hi2?}."""
    folder = run.path / "records"
    series: list[dict[str, Any]] = []
    by_file: dict[str, list[Figure]] = {}
    for figure in (figure for figure in FIGURES if figure.file):
        by_file.setdefault(figure.file, []).append(figure)
    for file, figures in by_file.items():
        columns = list(dict.fromkeys(name for figure in figures for name in (figure.column, figure.second) if name))
        by = ("node", "interface") if file == "queues" else ("flow",)
        extremes = _extremes(folder / f"{file}.parquet", by, columns, buckets, duration_s)
        if file == "queues":
            extremes = _bottleneck_only(extremes, run)
        for figure in figures:
            for key, per_column in extremes.items():
                entry: dict[str, Any] = {"figure": figure.name, "flow": None if file == "queues" else key[0]}
                if not _put(entry, "", per_column[figure.column], figure.scale):
                    continue
                if figure.second:
                    _put(entry, "2", per_column[figure.second], figure.scale)
                series.append(entry)
    fairness = _fairness(folder, buckets, duration_s)
    return [*series, fairness] if fairness else series


def _fairness(folder: Path, buckets: int, duration_s: float) -> dict[str, Any] | None:
    """Jain's index as steps, for runs of several flows."""
    intervals = records.collect(folder / "intervals.parquet", ("flow",), INTERVAL_COLUMNS)
    run = RunRecords(
        window=Window(0.0, duration_s),
        bottleneck=None,
        flows=tuple(records.rows(folder / "flows.parquet")),
        intervals={flow: columns for (flow,), columns in intervals.items()},
        queue=None,
        rtt_sum_ms=0.0,
        rtt_samples=0,
    )
    if len(run.tcp_flows) < 2:
        return None
    middles_s = (np.arange(buckets) + 0.5) * duration_s / buckets - common_window(run).start_s
    index = np.floor(middles_s / JAIN_WINDOW_S).astype(np.int64)
    steps = jain_series(run)
    values = [steps[at] if 0 <= at < len(steps) else None for at in index.tolist()]
    if all(value is None for value in values):
        return None
    return {"figure": JAIN, "flow": None, "lo": [None if value is None else _short(value) for value in values]}


def run_distributions(run: Run) -> list[dict[str, Any]]:
    """Quantiles of each flow's round-trip time, for the cumulative distribution: {figure, flow, x}."""
    samples = records.collect(run.path / "records" / "acks.parquet", ("flow",), ("rtt_us",))
    distributions = []
    for (flow,), columns in samples.items():
        rtt_ms = columns["rtt_us"][np.isfinite(columns["rtt_us"])] / 1e3
        if rtt_ms.size:
            distributions.append(
                {
                    "figure": RTT_CDF,
                    "flow": flow,
                    "x": [_short(float(value)) for value in np.quantile(rtt_ms, QUANTILES)],
                }
            )
    return distributions


def buckets_for(flows: int) -> int:
    """How many buckets each series may have when there are this many flows in the report."""
    per_bucket = 2 * len(FIGURES) * max(1, flows)
    return int(np.clip(VALUE_BUDGET // per_bucket, FEWEST_BUCKETS, MOST_BUCKETS))


def _extremes(
    path: Path, by: tuple[str, ...], columns: list[str], buckets: int, duration_s: float
) -> dict[Key, dict[str, tuple[Floats, Floats]]]:
    extremes: dict[Key, dict[str, tuple[Floats, Floats]]] = {}
    for key, part in records.grouped(path, by, ("t_s", *columns)):
        if key not in extremes:
            if (len(extremes) + 1) * len(columns) * buckets * 2 > MOST_EXTREMES:
                raise RecordsError(
                    f"{path}: more than {len(extremes)} {' and '.join(by)}s, which run.json does not tell of"
                )
            extremes[key] = {name: (np.full(buckets, np.inf), np.full(buckets, -np.inf)) for name in columns}
        # A value at the very end belongs to the last bucket; what drains after the end is not drawn.
        index = np.minimum((part["t_s"] / duration_s * buckets + 1e-9).astype(np.int64), buckets - 1)
        timely = (part["t_s"] >= 0) & (part["t_s"] <= duration_s)
        for name in columns:
            known = timely & np.isfinite(part[name])
            low, high = extremes[key][name]
            np.minimum.at(low, index[known], part[name][known])
            np.maximum.at(high, index[known], part[name][known])
    return extremes


def _bottleneck_only(
    extremes: dict[Key, dict[str, tuple[Floats, Floats]]], run: Run
) -> dict[Key, dict[str, tuple[Floats, Floats]]]:
    """The bottleneck that the environment names, otherwise the interface with the longest queue."""
    named = run.environment.get("bottleneck")
    if isinstance(named, dict):
        key = (str(named.get("node")), str(named.get("interface")))
        return {key: extremes[key]} if key in extremes else {}
    if not extremes:
        return {}
    longest = max(extremes, key=lambda key: float(np.nan_to_num(extremes[key]["backlog_packets"][1], neginf=0.0).sum()))
    return {longest: extremes[longest]}


def _put(entry: dict[str, Any], suffix: str, extremes: tuple[Floats, Floats], scale: float) -> bool:
    low, high = extremes
    if not np.isfinite(low).any():
        return False
    entry[f"lo{suffix}"] = [_short(value * scale) for value in low.tolist()]
    highs = [_short(value * scale) for value in high.tolist()]
    if highs != entry[f"lo{suffix}"]:
        entry[f"hi{suffix}"] = highs
    return True


def _short(value: float) -> float | int | None:
    """Four or five significant digits: below what a pixel shows."""
    if not np.isfinite(value):
        return None
    rounded = float(f"{value:.5g}" if abs(value) >= 100 else f"{value:.4g}")
    return int(rounded) if rounded == int(rounded) else rounded
