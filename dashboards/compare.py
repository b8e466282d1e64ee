# SPDX-License-Identifier: Apache-2.0
"""Compare: runs laid over each other, aligned at their start."""

from __future__ import annotations

from typing import Any

from dashboards.addresses import ZERO_S
from dashboards.bands import banded, chart, completed, edges
from dashboards.parts import (
    SELECT_COMPLETE,
    Query,
    Variable,
    assembled,
    board,
    bucketed,
    distribution,
    lines,
    one_of,
    rows,
    several,
)

CHOSEN = one_of("r.run", "runs")
RUNS = f"{one_of('r.experiment', 'experiments')} AND {CHOSEN}"
AT = f"p.t_s BETWEEN $__unixEpochFrom() - {ZERO_S} AND $__unixEpochTo() - {ZERO_S}"
SHOWN = f"p.width_ms = width_ms(r.finest_ms, $__interval_ms) AND {AT}"
SECONDS = f"p.width_ms = width_ms(r.finest_ms, greatest($__interval_ms, 1000)) AND {AT}"
NAME = "concat_ws(' ', nullif(r.cca, ''), r.label)"
GROUP = f"""
    CASE WHEN {one_of("'algorithm'", "by")} THEN r.cca
    ELSE coalesce((SELECT min(v.value) FROM run_params v WHERE v.run_id = r.run_id AND {one_of("v.name", "by")}), '–') END
"""

SELECT_RUNS = f"""
    SELECT r.run AS __value, concat_ws(' ', nullif(r.cca, ''), r.label) AS __text
    FROM runs r
    WHERE {one_of("r.experiment", "experiments")} AND r.status = 'complete'
    ORDER BY r.cca, r.label, r.run LIMIT 200
"""
SELECT_FIRST = f"""
    SELECT r.run FROM runs r
    WHERE {one_of("r.experiment", "experiment")} AND r.status = 'complete'
    ORDER BY {CHOSEN} DESC, r.cca, r.label, r.run LIMIT 1
"""
SELECT_GROUPINGS = f"""
    SELECT 'algorithm' AS name
    UNION SELECT DISTINCT v.name FROM run_params v JOIN runs r USING (run_id)
    WHERE {one_of("r.experiment", "experiments")}
    ORDER BY 1
"""
JAIN = f"""
    SELECT time, metric, sum(share) * sum(share) / nullif(count(*) * sum(share * share), 0) AS value FROM (
        SELECT $__timeGroup(t, $__interval) AS time, metric, flow, avg(goodput_mbps) AS share
        FROM (SELECT elapsed(p.t_s) AS t, {NAME} AS metric, p.flow, p.goodput_mbps
            FROM flow_points p JOIN runs r USING (run_id)
            WHERE {RUNS} AND {SECONDS} AND p.goodput_mbps IS NOT NULL) points
        GROUP BY 1, 2, 3) shares
    GROUP BY 1, 2 HAVING sum(share) > 0 ORDER BY 1
"""
# Each flow over its own time: a run's metric of the name counts the time in which a short transfer is over already.
OF_FLOWS = f"""
    SELECT rtt_ms, series, avg(value) AS value FROM (
        SELECT r.cca AS series, avg(f.rtt_mean_ms) AS rtt_ms, avg(f.goodput_mbps) AS value
        FROM runs r JOIN flows f USING (run_id)
        WHERE {RUNS} AND r.cca <> '' AND f.rtt_mean_ms IS NOT NULL AND f.goodput_mbps IS NOT NULL
        GROUP BY r.run_id, r.cca LIMIT 1000) of_runs
    GROUP BY 1, 2
"""
THROUGHPUT_AGAINST_DELAY = completed(OF_FLOWS, "rtt_ms")
QUANTILES = f"""
    SELECT r.cca, count(*) AS points,
        percentile_cont(0.05) WITHIN GROUP (ORDER BY p.rtt_ms) AS rtt_p5_ms,
        percentile_cont(0.5) WITHIN GROUP (ORDER BY p.rtt_ms) AS rtt_p50_ms,
        percentile_cont(0.95) WITHIN GROUP (ORDER BY p.rtt_ms) AS rtt_p95_ms,
        percentile_cont(0.05) WITHIN GROUP (ORDER BY p.goodput_mbps) AS goodput_p5_mbps,
        percentile_cont(0.5) WITHIN GROUP (ORDER BY p.goodput_mbps) AS goodput_p50_mbps,
        percentile_cont(0.95) WITHIN GROUP (ORDER BY p.goodput_mbps) AS goodput_p95_mbps
    FROM flow_points p JOIN runs r USING (run_id)
    WHERE {RUNS} AND {SECONDS} GROUP BY 1 ORDER BY 1
"""
QUANTILE_UNITS = {
    **{f"rtt_p{percent}_ms": [("unit", "ms")] for percent in (5, 50, 95)},
    **{f"goodput_p{percent}_mbps": [("unit", "Mbits")] for percent in (5, 50, 95)},
}
INTERVAL = (
    "Mean over the runs that share an algorithm or a parameter's value (variable Grouped by), with its 95 % confidence "
    "interval as a band (Student's t; none for one run)."
)


def over_time(value: str) -> Query:
    return Query(bucketed(value, RUNS, metric=NAME), series=True)


def by_group(value: str) -> Query:
    """Means over the runs of an algorithm or of a parameter's value, with their intervals; each run counts once per bucket."""
    of_runs = f"""SELECT $__timeGroup(t, $__interval) AS time, name, run_id, {value} AS value
        FROM (SELECT elapsed(p.t_s) AS t, {GROUP.strip()} AS name, p.*
            FROM flow_points p JOIN runs r USING (run_id)
            WHERE {RUNS} AND {SHOWN}) points
        GROUP BY 1, 2, 3 HAVING {value} IS NOT NULL"""
    means = f"""SELECT time, name, avg(value) AS mean, stddev_samp(value) AS deviation, count(*) AS runs
        FROM ({of_runs}) of_runs GROUP BY 1, 2"""
    return Query(edges(means, "time"), series=True)


def spread(column: str) -> Query:
    """Values of a column of points, drawn at random where there are very many."""
    return Query(
        f"""
        SELECT time, metric, value FROM (
            SELECT elapsed(p.t_s) AS time, concat_ws(' ', nullif(r.cca, ''), p.flow) AS metric, p.{column} AS value
            FROM flow_points p JOIN runs r USING (run_id)
            WHERE {RUNS} AND {SECONDS} AND p.{column} IS NOT NULL
            ORDER BY md5(p.t_s::text || r.run) LIMIT 10000) points
        ORDER BY time
        """,
        series=True,
    )


def dashboard() -> Any:
    page = board(
        "compare", "Any runs laid over each other, aligned at their start, by algorithm or parameter.", elapsed_s=60
    )
    variables = [
        *several(SELECT_COMPLETE, Variable("runs", "Runs", SELECT_RUNS, multi=True), first=CHOSEN),
        Variable("run", "First run", SELECT_FIRST, hidden=True),
        Variable("by", "Grouped by", SELECT_GROUPINGS),
    ]
    spread_of = "Of points of one second, or of the panel's interval where that is longer; at most 10 000 of them."
    panels = [
        lines(
            "Throughput",
            "Mean over each run's flows, of wire bytes per interval.",
            "Mbits",
            over_time("avg(throughput_mbps)"),
        ),
        lines(
            "Congestion window", "Mean over each run's flows.", "none", over_time("avg(cwnd_packets)"), label="packets"
        ),
        lines("Round-trip time", "Mean of the samples from the capture.", "ms", over_time("avg(rtt_ms)")),
        lines("In flight", "Greatest of each run's flows.", "bytes", over_time("max(in_flight_bytes)")),
        banded(lines("Goodput by group", INTERVAL, "Mbits", by_group("avg(goodput_mbps)")), filled=True),
        banded(lines("Round-trip time by group", INTERVAL, "ms", by_group("avg(rtt_ms)")), filled=True),
        lines(
            "Jain's index",
            "Of the flows' goodputs in each interval (Kato 2012 eq 5.2): 1 is fair, 1/n is one flow with everything. "
            "Runs of one flow are always 1.",
            "none",
            Query(JAIN, series=True),
        ),
        chart(
            "Throughput against delay",
            "Goodput and RTT of each run, a point each, by algorithm: up and to the left is better. Means over the run's flows, "
            "each over its own time.",
            "Mbits",
            Query(THROUGHPUT_AGAINST_DELAY),
            ("rtt_ms", "Mean RTT", "ms"),
            y_label="Goodput of a flow",
            joined=False,
        ),
        distribution("Distribution of RTT by algorithm", spread_of, "ms", spread("rtt_ms")),
        distribution("Distribution of goodput by algorithm", spread_of, "Mbits", spread("goodput_mbps")),
        rows(
            "Quantiles",
            "Quantiles of RTT and goodput over points of one second (or of the panel's interval, where that is longer), "
            "by algorithm.",
            Query(QUANTILES),
            height=6,
            overrides=QUANTILE_UNITS,
        ),
    ]
    return assembled(page, variables, panels)
