# SPDX-License-Identifier: Apache-2.0
"""A run's records as the metrics see them: arrays in memory, cut to the window that counts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from analysis import records
from analysis.arrays import np
from analysis.errors import ContextError, RecordsError
from analysis.records import Columns
from base.small_files import small_json

INTERVAL_COLUMNS = ("t_s", "width_s", "wire_bytes", "payload_bytes", "retransmitted_bytes", "delivered_bytes")
WINDOW_COLUMNS = ("t_s", "cwnd_packets", "ssthresh_packets", "snd_una", "snd_nxt")
QUEUE_COLUMNS = ("t_s", "backlog_packets", "sent_packets", "sent_bytes", "drops", "marks")


@dataclass(frozen=True)
class Window:
    """The part of the run that counts: after the warm-up, to the end of the experiment's duration."""

    start_s: float
    end_s: float

    @property
    def length_s(self) -> float:
        return max(0.0, self.end_s - self.start_s)


@dataclass(frozen=True)
class DrainedQueue:
    """The interface whose queue the experiment is about, and the rate at which it drains."""

    node: str
    interface: str
    rate_bps: float | None


@dataclass(frozen=True)
class RunRecords:
    """What the metrics are functions of.

    queue: None where no bottleneck is named or nothing was sampled there
    queues: of every sampled interface, by its name
    windows: by flow its congestion window over time, at each ACK (with ssthresh and what is acknowledged) or as sampled
    sources: by flow, which record each quantity comes from (analysis.metrics.needs); empty: nothing is said of it
    """

    window: Window
    bottleneck: DrainedQueue | None
    flows: tuple[Mapping[str, Any], ...]
    intervals: Mapping[str, Columns]
    queue: Columns | None
    rtt_sum_ms: float
    rtt_samples: int
    applications: tuple[Mapping[str, Any], ...] = ()
    changes_s: tuple[float, ...] = ()
    sources: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    queues: Mapping[str, Columns] = field(default_factory=dict)
    windows: Mapping[str, Columns] = field(default_factory=dict)

    @property
    def tcp_flows(self) -> tuple[Mapping[str, Any], ...]:
        """Flows under a congestion control; constant-rate cross traffic has none."""
        return tuple(flow for flow in self.flows if flow.get("cca"))


def parse_context(context: Mapping[str, Any]) -> tuple[Window, DrainedQueue | None]:
    """Check and convert what the runner knows about the run."""
    duration_s = _number(context, "duration_s", None)
    warmup_s = _number(context, "warmup_s", 0.0)
    if not 0.0 <= warmup_s < duration_s:
        raise ContextError(f"warmup_s {warmup_s} has to lie between 0 and duration_s {duration_s}")
    named = context.get("bottleneck")
    if named is None:
        return Window(warmup_s, duration_s), None
    for name in ("node", "interface"):
        if not isinstance(named.get(name), str):
            raise ContextError(f"context bottleneck has no {name!r}; it needs node, interface and rate_bps")
    rate_bps = named.get("rate_bps")
    if rate_bps is not None and not rate_bps > 0:
        raise ContextError(f"bottleneck rate_bps is {rate_bps}; it has to be above 0, or null where nothing limits it")
    return Window(warmup_s, duration_s), DrainedQueue(named["node"], named["interface"], rate_bps)


def read_run(run_dir: Path, context: Mapping[str, Any]) -> RunRecords:
    """Read the records of one run folder."""
    window, bottleneck = parse_context(context)
    folder = run_dir / "records"
    sampled = records.collect(folder / "queues.parquet", ("node", "interface"), QUEUE_COLUMNS)
    queue = None if bottleneck is None else sampled.get((bottleneck.node, bottleneck.interface))
    flows = tuple(records.rows(folder / "flows.parquet"))
    rtt_sum_ms, rtt_samples = _round_trips(folder, window, {flow["flow"] for flow in flows})
    intervals = records.collect(folder / "intervals.parquet", ("flow",), INTERVAL_COLUMNS)
    return RunRecords(
        window=window,
        bottleneck=bottleneck,
        flows=flows,
        intervals={flow: columns for (flow,), columns in intervals.items()},
        queue=queue,
        rtt_sum_ms=rtt_sum_ms,
        rtt_samples=rtt_samples,
        applications=tuple(_applications(folder / "applications.json")),
        changes_s=tuple(sorted({float(t) for t in context.get("changes_s") or ()})),
        sources=context.get("sources") or {},
        queues={interface: columns for (_, interface), columns in sampled.items()},
        windows=_windows(folder),
    )


def _windows(folder: Path) -> dict[str, Columns]:
    """Each flow's window from tcp_probe, else as its socket was sampled, in the order of time."""
    probed = records.collect(folder / "sockets.parquet", ("flow",), WINDOW_COLUMNS)
    by_flow = {flow: columns for (flow,), columns in probed.items()}
    for (flow,), columns in records.collect(folder / "tcp_info.parquet", ("flow",), WINDOW_COLUMNS[:2]).items():
        by_flow.setdefault(flow, columns)
    return {flow: _in_order(columns) for flow, columns in by_flow.items()}


def _in_order(columns: Columns) -> Columns:
    times_s = columns["t_s"]
    if (np.diff(times_s) >= 0).all():
        return columns
    order = np.argsort(times_s, kind="stable")
    return {name: values[order] for name, values in columns.items()}


RTT_SOURCES = (("acks", "rtt_us"), ("sockets", "srtt_us"), ("tcp_info", "rtt_us"))
"""Records with round-trip times, from the best; the last two are smoothed ones."""


def _round_trips(folder: Path, window: Window, flows: set[str]) -> tuple[float, int]:
    """Sum (ms) and number of the samples in the window, each flow's from the first record that has it."""
    total_ms, count = 0.0, 0
    for kind, column in RTT_SOURCES:
        sampled: set[str] = set()
        for (flow,), part in records.grouped(folder / f"{kind}.parquet", ("flow",), ("t_s", column)):
            if flow not in flows:
                continue
            sampled.add(flow)
            counted = (part["t_s"] >= window.start_s) & (part["t_s"] <= window.end_s) & np.isfinite(part[column])
            if kind != "acks":
                counted &= part[column] > 0
            total_ms += float(part[column][counted].sum()) / 1e3
            count += int(counted.sum())
        flows = flows - sampled
        if not flows:
            break
    return total_ms, count


def _applications(file: Path) -> list[dict[str, Any]]:
    """Results of the traffic's programs (collectors.applications); none where the run had no traffic."""
    if not file.exists():
        return []
    try:
        results = small_json(file)
    except (OSError, ValueError) as error:
        raise RecordsError(f"{file}: {error}; ./warpbed collect makes the records again") from error
    if not isinstance(results, list) or not all(isinstance(result, dict) for result in results):
        raise RecordsError(f"{file}: not a list of objects; ./warpbed collect makes the records again")
    return results


def _number(context: Mapping[str, Any], name: str, default: float | None) -> float:
    value = context.get(name)
    if value is None:
        value = default
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ContextError(f"context {name} is {value!r}; it has to be a number of seconds")
    return float(value)
