# SPDX-License-Identifier: Apache-2.0
"""Set runs of one experiment on several kinds of hosts side by side: what differs, by how much, and for which reason.

    python -m analysis.agreement RESULTS/EXPERIMENT [--reference virtual] [--format table|markdown|json]

Runs with equal parameters are compared host by host, means over seeds. A reason is an account, not a guess: the difference
of the mean RTT is split into the idle path's, the queue's and a rest; the queue's is set against the windows'; throughput
against the time that the queue stood empty; losses against how often and how hard the buffer overflowed.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from analysis import records
from analysis.errors import AnalysisError
from analysis.results import Run, load_experiment
from base import screen
from base.quantities import seconds
from base.small_files import small_json
from base.text import clean, json_text

BURST_GAP_S = 0.2
"""Drops closer than this belong to one overflow."""


@dataclass(frozen=True)
class Measured:
    """What one run says, after its warm-up. Packets are frames of the bottleneck's queue."""

    throughput_mbps: float
    rtt_ms: float
    idle_rtt_ms: float
    queue_packets: float
    queue_delay_ms: float
    queue_empty_share: float
    cwnd_packets: float
    drops: float
    overflows: float
    timer_late_p99_ms: float
    cpu_busy: float


@dataclass(frozen=True)
class Difference:
    """One metric on one host against the reference."""

    params: str
    host: str
    verdict: str
    metric: str
    reference: float
    value: float
    reason: str

    @property
    def percent(self) -> float:
        return 100 * (self.value - self.reference) / self.reference if self.reference else math.nan


def compare(runs: Sequence[Run], reference: str = "virtual") -> list[Difference]:
    """Differences of every host from the reference, for each combination of parameters that both have.

    Raises AnalysisError where there is nothing to compare.
    """
    groups: dict[str, dict[str, list[Run]]] = {}
    for run in runs:
        if run.complete:
            name = ", ".join(f"{key}={value}" for key, value in run.params.items()) or "–"
            groups.setdefault(name, {}).setdefault(run.host, []).append(run)
    differences = [
        difference
        for name, hosts in groups.items()
        for host, members in hosts.items()
        if reference in hosts and host != reference
        for difference in _differences(name, host, hosts[reference], members)
    ]
    if not differences:
        hosts_run = sorted({run.host for run in runs if run.complete}) or ["none"]
        raise AnalysisError(
            f"no runs of host {reference!r} and of another with equal parameters; hosts here: {', '.join(hosts_run)}"
        )
    return differences


def _differences(name: str, host: str, expected: Sequence[Run], runs: Sequence[Run]) -> Iterator[Difference]:
    a, b = _mean([measure(run) for run in expected]), _mean([measure(run) for run in runs])
    verdict = "/".join(sorted({run.verdict for run in runs}))
    reasons = {
        "throughput_mbps": _throughput_reason(a, b),
        "rtt_ms": _rtt_reason(a, b),
        "queue_packets": _queue_reason(a, b),
        "drops": _loss_reason(a, b),
    }
    for metric, reason in reasons.items():
        yield Difference(name, host, verdict, metric, getattr(a, metric), getattr(b, metric), reason)


def _throughput_reason(a: Measured, b: Measured) -> str:
    queue = f"queue empty {b.queue_empty_share:.1%} of the time, {a.queue_empty_share:.1%} there"
    if abs(b.queue_empty_share - a.queue_empty_share) < 0.005 and abs(b.throughput_mbps / a.throughput_mbps - 1) < 0.01:
        return f"{queue}: the link is the limit on both"
    if b.throughput_mbps < 0.99 * a.throughput_mbps and b.queue_empty_share < 0.5:
        busy = f"a CPU {b.cpu_busy:.0%} busy, timers p99 {b.timer_late_p99_ms:.2f} ms late"
        return f"{queue}: packets waited, so that the emulated link itself was slower than asked ({busy})"
    return queue


def _rtt_reason(a: Measured, b: Measured) -> str:
    idle, queue = b.idle_rtt_ms - a.idle_rtt_ms, b.queue_delay_ms - a.queue_delay_ms
    rest = b.rtt_ms - a.rtt_ms - idle - queue
    return (
        f"idle path {idle:+.2f} ms (its hosts' own time), queue {queue:+.2f} ms, "
        f"rest {rest:+.2f} ms (timers p99 {b.timer_late_p99_ms:.2f} ms late)"
    )


def _queue_reason(a: Measured, b: Measured) -> str:
    return f"mean window {b.cwnd_packets - a.cwnd_packets:+.1f} packets against it, {b.overflows - a.overflows:+.0f} overflows"


def _loss_reason(a: Measured, b: Measured) -> str:
    def each(m: Measured) -> float:
        return m.drops / m.overflows if m.overflows else 0.0

    return f"{b.overflows:.0f} overflows of {each(b):.1f} packets, {a.overflows:.0f} of {each(a):.1f} there"


def measure(run: Run) -> Measured:
    """The numbers of a run's steady state, from its records and facts."""
    facts = small_json(run.path / "run.json")["facts"]
    warmup_s = seconds(str(run.spec.get("warmup", "0s")))
    place = run.environment.get("bottleneck") or {}
    queue = _queue(run, str(place.get("interface", "")), warmup_s)
    rate_bps = float(place.get("rate_bps") or math.nan)
    backlog = queue["backlog_packets"] if queue else np.array([math.nan])
    drops_at = queue["t_s"][1:][np.diff(queue["drops"]) > 0] if queue else np.array([])
    realtime = facts.get("realtime") or {}
    machines = [realtime] if "timers" in realtime else list(realtime.values())
    idle = list((facts.get("idle_rtt") or {}).values())
    return Measured(
        throughput_mbps=float(queue["sent_bytes"][-1] - queue["sent_bytes"][0]) * 8e-6 / float(np.ptp(queue["t_s"]))
        if queue and len(queue["t_s"]) > 1
        else math.nan,
        rtt_ms=_rtt_ms(run, warmup_s),
        idle_rtt_ms=sum(idle) / len(idle) / 1e6 if idle else math.nan,
        queue_packets=float(backlog.mean()),
        queue_delay_ms=float(queue["backlog_bytes"].mean()) * 8e3 / rate_bps if queue else math.nan,
        queue_empty_share=float((backlog == 0).mean()),
        cwnd_packets=_window(run, warmup_s),
        drops=float(queue["drops"][-1] - queue["drops"][0]) if queue else math.nan,
        overflows=float(len(drops_at) and 1 + int((np.diff(drops_at) > BURST_GAP_S).sum())),
        timer_late_p99_ms=max((row["timer_late_p99_us"] / 1e3 for row in machines), default=0.0),
        cpu_busy=max((row["cpu_busy_max"] for row in machines), default=0.0),
    )


def _queue(run: Run, interface: str, warmup_s: float) -> records.Columns | None:
    columns = ("t_s", "backlog_packets", "backlog_bytes", "sent_bytes", "drops")
    table = records.collect(run.path / "records/queues.parquet", ["interface"], columns).get((interface,))
    if table is None:
        return None
    keep = table["t_s"] >= warmup_s
    return {name: column[keep] for name, column in table.items()}


def _rtt_ms(run: Run, warmup_s: float) -> float:
    parts = records.collect(run.path / "records/acks.parquet", ["flow"], ("t_s", "rtt_us")).values()
    values = np.concatenate([part["rtt_us"][part["t_s"] >= warmup_s] for part in parts] or [np.array([])])
    return float(np.nanmean(values)) / 1e3 if np.isfinite(values).any() else math.nan


def _window(run: Run, warmup_s: float) -> float:
    """Sum over flows of their mean congestion windows."""
    parts = records.collect(run.path / "records/sockets.parquet", ["flow"], ("t_s", "cwnd_packets")).values()
    means = [
        float(part["cwnd_packets"][part["t_s"] >= warmup_s].mean()) for part in parts if (part["t_s"] >= warmup_s).any()
    ]
    return sum(means) if means else math.nan


def _mean(rows: Sequence[Measured]) -> Measured:
    tables = [asdict(row) for row in rows]
    return Measured(**{name: sum(table[name] for table in tables) / len(tables) for name in tables[0]})


HEADS = ("run", "host", "verdict", "metric", "reference", "measured", "difference", "reason")


def rows(differences: Sequence[Difference]) -> list[tuple[str, ...]]:
    return [
        (
            d.params,
            d.host,
            d.verdict,
            d.metric,
            f"{d.reference:.4g}",
            f"{d.value:.4g}",
            "–" if math.isnan(d.percent) else f"{d.percent:+.1f} %",
            d.reason,
        )
        for d in differences
    ]


def render(differences: Sequence[Difference], form: str) -> str:
    if form == "json":
        return json_text([{**asdict(d), "percent": _plain(d.percent)} for d in differences]) + "\n"
    table = [HEADS, *(tuple(map(clean, row)) for row in rows(differences))]
    if form == "markdown":
        lines = [" | ".join(row) for row in table]
        lines.insert(1, " | ".join("---" for _ in HEADS))
        return "".join(f"| {line} |\n" for line in lines)
    widths = [max(len(row[column]) for row in table) for column in range(len(HEADS))]
    return "".join(
        "  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip() + "\n" for row in table
    )


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 3)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Compare runs of one experiment between kinds of hosts.")
    parser.add_argument("folders", nargs="+", type=Path, metavar="RESULTS/EXPERIMENT")
    parser.add_argument("--reference", default="virtual", help="kind of host that the others are set against")
    parser.add_argument("--format", choices=["table", "markdown", "json"], default="table")
    options = parser.parse_args(argv)
    try:
        runs = [run for folder in options.folders for run in load_experiment(folder)]
        print(render(compare(runs, options.reference), options.format), end="")
    except AnalysisError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    screen.install()
    sys.exit(main())
