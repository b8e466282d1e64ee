# SPDX-License-Identifier: Apache-2.0
"""Compare: runs laid over each other, aligned at their start."""

from __future__ import annotations

from typing import Any

from dashboards.parts import ZERO_S, Query, Variable, bars, board, bucketed, distribution, lines, rows

RUNS = "r.experiment IN (${experiment:sqlstring}) AND r.run IN (${run:sqlstring})"
NAME = "concat_ws(' ', nullif(r.cca, ''), r.label)"


def over_time(value: str) -> Query:
    return Query(bucketed(value, RUNS, metric=NAME), series=True)


def by_group(value: str) -> Query:
    """Means over the runs of an algorithm or of a parameter's value."""
    metric = "CASE WHEN ${by:sqlstring} = 'algorithm' THEN r.cca ELSE coalesce((SELECT v.value FROM run_params v WHERE v.run_id = r.run_id AND v.name = ${by:sqlstring}), '–') END"
    return Query(bucketed(value, RUNS, metric=metric), series=True)


def dashboard() -> Any:
    made = board(
        "compare", "Any runs laid over each other, aligned at their start, by algorithm or parameter.", elapsed_s=60
    )
    made = made.with_variable(
        Variable(
            "experiment",
            "Experiment",
            "SELECT DISTINCT experiment FROM runs WHERE status = 'complete' ORDER BY 1",
            multi=True,
        )
    )
    made = made.with_variable(Variable("run", "Run", "SELECT r.run AS __value, concat_ws(' ', nullif(r.cca, ''), r.label) AS __text FROM runs r "
        "WHERE r.experiment IN (${experiment:sqlstring}) AND r.status = 'complete' ORDER BY r.cca, r.label, r.run LIMIT 200", multi=True))  # fmt: skip
    made = made.with_variable(Variable("by", "Grouped by", "SELECT 'algorithm' AS name UNION SELECT DISTINCT v.name FROM run_params v JOIN runs r USING (run_id) "
        "WHERE r.experiment IN (${experiment:sqlstring}) ORDER BY 1"))  # fmt: skip
    made = made.with_panel(
        lines(
            "Throughput",
            "Mean over each run's flows, of wire bytes per interval.",
            "Mbits",
            over_time("avg(throughput_mbps)"),
        )
    )
    made = made.with_panel(
        lines(
            "Congestion window", "Mean over each run's flows.", "none", over_time("avg(cwnd_packets)"), label="packets"
        )
    )
    made = made.with_panel(
        lines("Round-trip time", "Mean of the samples from the capture.", "ms", over_time("avg(rtt_ms)"))
    )
    made = made.with_panel(
        lines("In flight", "Greatest of each run's flows.", "bytes", over_time("max(in_flight_bytes)"))
    )
    made = made.with_panel(lines("Goodput by group", "Mean over flows and runs that share an algorithm or a parameter's value (variable Grouped by).", "Mbits",
                                 by_group("avg(goodput_mbps)")))  # fmt: skip
    made = made.with_panel(
        lines("Round-trip time by group", "Mean over flows and runs of a group.", "ms", by_group("avg(rtt_ms)"))
    )
    made = made.with_panel(lines("Jain's index", "Of the flows' goodputs in each interval (Kato 2012 eq 5.2): 1 is fair, 1/n is one flow with everything. "
        "Runs of one flow are always 1.", "none", Query(f"""
        SELECT time, metric, sum(share) * sum(share) / nullif(count(*) * sum(share * share), 0) AS value FROM (
            SELECT $__timeGroup(t, $__interval) AS time, metric, flow, avg(goodput_mbps) AS share
            FROM (SELECT elapsed(p.t_s) AS t, {NAME} AS metric, p.flow, p.goodput_mbps FROM flow_points p JOIN runs r USING (run_id)
                WHERE {RUNS} AND p.width_ms = width_ms(r.finest_ms, greatest($__interval_ms, 1000)) AND p.goodput_mbps IS NOT NULL
                AND p.t_s BETWEEN $__unixEpochFrom() - {ZERO_S} AND $__unixEpochTo() - {ZERO_S}) points GROUP BY 1, 2, 3) shares
        GROUP BY 1, 2 HAVING sum(share) > 0 ORDER BY 1""", series=True)))  # fmt: skip
    made = made.with_panel(bars("Throughput against delay", "Goodput and mean RTT of each run side by side, from the least delay to the greatest.", "none", Query(
        f"SELECT {NAME} || ' #' || r.seed AS run, max(m.value) FILTER (WHERE m.name = 'rtt_mean_ms') AS rtt_mean_ms, "
        f"max(m.value) FILTER (WHERE m.name = 'goodput_mbps') AS goodput_mbps FROM runs r JOIN run_metrics m USING (run_id) "
        f"WHERE {RUNS} AND m.name IN ('rtt_mean_ms', 'goodput_mbps') GROUP BY r.run_id, r.cca, r.label, r.seed ORDER BY 2 LIMIT 60"), "run"))  # fmt: skip
    for title, unit, column in (("RTT", "ms", "rtt_ms"), ("goodput", "Mbits", "goodput_mbps")):
        made = made.with_panel(distribution(f"Distribution of {title} by algorithm", "Of means over points of one second or of what the run has, at most 10 000 of them.", unit, Query(f"""
            SELECT time, metric, value FROM (SELECT elapsed(p.t_s) AS time, concat_ws(' ', nullif(r.cca, ''), p.flow) AS metric, p.{column} AS value
                FROM flow_points p JOIN runs r USING (run_id) WHERE {RUNS} AND p.width_ms = width_ms(r.finest_ms, 1000) AND p.{column} IS NOT NULL
                ORDER BY md5(p.t_s::text || r.run) LIMIT 10000) points ORDER BY time""", series=True)))  # fmt: skip
    return made.with_panel(rows("Quantiles", "Quantiles of RTT and goodput over points of one second, by algorithm.", Query(f"""
        SELECT r.cca, count(*) AS points, percentile_cont(0.05) WITHIN GROUP (ORDER BY p.rtt_ms) AS rtt_p5_ms, percentile_cont(0.5) WITHIN GROUP (ORDER BY p.rtt_ms) AS rtt_p50_ms,
        percentile_cont(0.95) WITHIN GROUP (ORDER BY p.rtt_ms) AS rtt_p95_ms, percentile_cont(0.05) WITHIN GROUP (ORDER BY p.goodput_mbps) AS goodput_p5_mbps,
        percentile_cont(0.5) WITHIN GROUP (ORDER BY p.goodput_mbps) AS goodput_p50_mbps, percentile_cont(0.95) WITHIN GROUP (ORDER BY p.goodput_mbps) AS goodput_p95_mbps
        FROM flow_points p JOIN runs r USING (run_id) WHERE {RUNS} AND p.width_ms = width_ms(r.finest_ms, 1000) GROUP BY 1 ORDER BY 1"""), width=24, height=6,
        overrides={f"{name}_p{q}_{unit}": [("unit", shown)] for name, unit, shown in (("rtt", "ms", "ms"), ("goodput", "mbps", "Mbits")) for q in (5, 50, 95)}))  # fmt: skip
