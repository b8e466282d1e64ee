# SPDX-License-Identifier: Apache-2.0
"""Run: everything of one run on one time axis, per flow."""

from __future__ import annotations

from typing import Any

from dashboards.experiments import verdict_colours
from dashboards.parts import ZERO_S, Marks, Query, Variable, board, bucketed, lines, rows

RUN = "r.experiment = ${experiment:sqlstring} AND r.run = ${run:sqlstring}"
FLOW = RUN + " AND p.flow IN (${flow:sqlstring})"
KINDS = {
    "loss": ("Losses", "red"), "timeout": ("Timeouts", "purple"), "recovery": ("Recovery", "orange"), "phase": ("Phases", "blue"),
    "link": ("Link changes", "green"), "flow": ("Flows start", "text"),
}  # fmt: skip


def flow_series(value: str, suffix: str = "", ref: str = "A") -> Query:
    metric = f"p.flow || ' {suffix}'" if suffix else "p.flow"
    return Query(bucketed(value, FLOW, metric=metric), ref, series=True)


def queue_series(value: str, suffix: str, ref: str) -> Query:
    return Query(bucketed(value, RUN, metric=f"p.interface || ' {suffix}'", alike="queue_points"), ref, series=True)


def about(columns: str) -> Query:
    return Query(f"SELECT {columns} FROM runs r WHERE {RUN}")


def events(kind: str) -> str:
    return f"""SELECT elapsed(e.t_s) AS time, concat_ws(': ', nullif(e.flow, ''), e.text) AS text, e.kind AS tags
        FROM events e JOIN runs r USING (run_id) WHERE {RUN} AND e.kind = '{kind}' AND e.flow IN ('', ${{flow:sqlstring}})
        AND e.t_s BETWEEN $__unixEpochFrom() - {ZERO_S} AND $__unixEpochTo() - {ZERO_S} ORDER BY 1 LIMIT 500"""


def dashboard() -> Any:
    made = board(
        "run",
        "One run: throughput, window, RTT, queue and losses of its flows since its start, with its verdict.",
        elapsed_s=60,
    )
    made = made.with_variable(
        Variable(
            "experiment", "Experiment", "SELECT DISTINCT experiment FROM runs WHERE status = 'complete' ORDER BY 1"
        )
    )
    made = made.with_variable(
        Variable(
            "run",
            "Run",
            "SELECT run FROM runs WHERE experiment = ${experiment:sqlstring} AND status = 'complete' ORDER BY cca, label, run",
        )
    )
    made = made.with_variable(
        Variable(
            "flow", "Flow", f"SELECT f.flow FROM flows f JOIN runs r USING (run_id) WHERE {RUN} ORDER BY 1", multi=True
        )
    )
    for kind, (name, colour) in KINDS.items():
        made = made.annotation(Marks(name, colour, events(kind), enable=kind in ("loss", "timeout", "link")))
    made = made.with_panel(rows("Run", "The run and its verdict.", about(
        "verdict, cca, label AS parameters, host, kernel, seed, duration_s, started_at, made_at, title"), width=16, height=4,
        overrides={**verdict_colours(), "duration_s": [("unit", "s")]}))  # fmt: skip
    made = made.with_panel(rows("Why", "Reasons of the verdict.", Query(
        f"SELECT severity, rule, message FROM run_reasons JOIN runs r USING (run_id) WHERE {RUN} "
        f"UNION ALL SELECT 'ok', 'verdict', 'nothing was found' FROM runs r WHERE {RUN} AND reasons = '' LIMIT 100"), width=8, height=4))  # fmt: skip
    made = made.with_panel(
        lines(
            "Throughput", "Wire bytes that left the sender, per interval.", "Mbits", flow_series("avg(throughput_mbps)")
        )
    )
    made = made.with_panel(
        lines(
            "Goodput",
            "Bytes that reached the receiver for the first time, per interval.",
            "Mbits",
            flow_series("avg(goodput_mbps)"),
        )
    )
    made = made.with_panel(lines(
        "Congestion window and slow-start threshold", "cwnd and ssthresh at each ACK, from tcp_probe (sampled sockets where a host has no tracepoint). "
        "ssthresh is absent while infinite.", "none", flow_series("avg(cwnd_packets)", "cwnd"), flow_series("max(cwnd_packets_max)", "cwnd max", "B"),
        flow_series("avg(ssthresh_packets)", "ssthresh", "C"), label="packets"))  # fmt: skip
    made = made.with_panel(lines("Round-trip time", "srtt of the socket, and samples from the capture after Karn: mean and greatest.", "ms",
        flow_series("avg(srtt_ms)", "srtt"), flow_series("avg(rtt_ms)", "wire", "B"), flow_series("max(rtt_ms_max)", "wire max", "C")))  # fmt: skip
    made = made.with_panel(
        lines(
            "In flight",
            "Bytes sent and not yet acknowledged cumulatively.",
            "bytes",
            flow_series("max(in_flight_bytes)"),
        )
    )
    made = made.with_panel(
        lines(
            "Retransmitted",
            "Bytes sent again, whatever the reason.",
            "bytes",
            flow_series("sum(retransmitted_bytes)"),
            bars=True,
        )
    )
    made = made.with_panel(lines("Queue", "Packets that wait in each router's queue: mean and greatest in the interval.", "none",
        queue_series("avg(backlog_packets)", "mean", "A"), queue_series("max(backlog_packets_max)", "max", "B"), label="packets"))  # fmt: skip
    made = made.with_panel(lines("Drops and marks", "Packets that each router's queue dropped or marked, per interval.", "none",
        queue_series("sum(drops)", "drops", "A"), queue_series("sum(marks)", "marks", "B"), label="packets", bars=True))  # fmt: skip
    made = made.with_panel(rows("Flows", "Each data connection as a whole.", Query(
        f"SELECT p.flow, p.cca, src, dst, start_s, end_s, packets, retransmitted_packets, fast_retransmissions, timeout_retransmissions, spurious_retransmissions, throughput_mbps, goodput_mbps, rtt_min_ms, rtt_mean_ms, rtt_p95_ms, "
        f"completion_s FROM flows p JOIN runs r USING (run_id) WHERE {FLOW} ORDER BY 1"), height=6,
        overrides={name: [("unit", unit)] for name, unit in {"start_s": "s", "end_s": "s", "completion_s": "s", "throughput_mbps": "Mbits",
                   "goodput_mbps": "Mbits", "rtt_min_ms": "ms", "rtt_mean_ms": "ms", "rtt_p95_ms": "ms"}.items()}))  # fmt: skip
    return made.with_panel(rows("Metrics", "The run's metrics as ./warpbed metrics has them.", Query(
        f"SELECT name, value, unit FROM run_metrics JOIN runs r USING (run_id) WHERE {RUN} ORDER BY name"), height=8))  # fmt: skip
