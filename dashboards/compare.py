# SPDX-License-Identifier: Apache-2.0
"""Compare: runs laid over each other, aligned at their start."""

from __future__ import annotations

from typing import Any

from dashboards.addresses import ZERO_S
from dashboards.bands import banded, chart, completed, edges
from dashboards.looks import DASHES, MORE, algorithm_colours, dashed_settings, first_seed_listed, in_place
from dashboards.parts import (
    COUNTED,
    LEGIBLE_MS,
    NO_DATA,
    RUN_ORDER,
    Query,
    assembled,
    board,
    bucketed,
    lines,
    one_of,
    rows,
)
from dashboards.variables import SELECT_COMPLETE, Variable, several

CHOSEN = one_of("r.run", "runs")
RUNS = f"{one_of('r.experiment', 'experiments')} AND {CHOSEN}"
AT = f"p.t_s BETWEEN $__unixEpochFrom() - {ZERO_S} AND $__unixEpochTo() - {ZERO_S}"
LEGIBLE = f"p.width_ms = width_ms(r.finest_ms, greatest($__interval_ms, {LEGIBLE_MS})) AND {AT}"
SECONDS = f"p.width_ms = width_ms(r.finest_ms, greatest($__interval_ms, 1000)) AND {AT}"
# A run at a time (OFFSET 0), by its index: for many runs PostgreSQL would rather read every point that there is.
POINTS = f"""(SELECT q.* FROM runs q WHERE {RUNS.replace("r.", "q.")} OFFSET 0) r
        CROSS JOIN LATERAL (SELECT p.* FROM flow_points p WHERE p.run_id = r.run_id AND {SECONDS} OFFSET 0) p"""
# Short names, made of what differs among the runs that are shown: the value alone of an only parameter, if a unit says what it is.
# `setting` is what the seeds of a cell have in common.
# A setting's place among the others (by its numbers) is how its lines are drawn.
# OFFSET 0: a name is made once for its run, not for each of its points.
NAMED = f"""(SELECT n.*,
        concat_ws('{MORE}', nullif(n.cca, ''), nullif({in_place("n.place", "n.dash")} || coalesce(n.words, ''), '')) AS setting,
        concat_ws('{MORE}', nullif(n.cca, ''), nullif({in_place("n.place", "n.dash")} || concat_ws(', ', n.words,
            CASE WHEN n.seeds > 1 THEN 'seed ' || {in_place("n.seed_place", "n.seed")} END), '')) AS name
    FROM (SELECT c.*, (ARRAY[{", ".join(f"'{dash}'" for dash in DASHES)}])[1 + (c.place - 1) % {len(DASHES)}] AS dash
    FROM (SELECT q.*, o.words, w.seeds, dense_rank() OVER (ORDER BY o.numbers, o.words) AS place,
        dense_rank() OVER (PARTITION BY q.cca, o.numbers, o.words ORDER BY q.seed) AS seed_place
    FROM (SELECT count(DISTINCT r.experiment) AS experiments, count(DISTINCT r.seed) AS seeds,
            ARRAY(SELECT v.name FROM run_params v JOIN runs r USING (run_id) WHERE {RUNS} AND v.name <> 'cca'
                GROUP BY 1 HAVING count(DISTINCT v.value) > 1) AS differing FROM runs r WHERE {RUNS}) w
    JOIN runs q ON true
    CROSS JOIN LATERAL (SELECT nullif(concat_ws(', ', CASE WHEN w.experiments > 1 THEN q.experiment END,
        (SELECT string_agg(CASE WHEN cardinality(w.differing) > 1 OR v.number IS NULL OR v.value !~ '[A-Za-z%]$'
                THEN v.name || ' ' ELSE '' END || v.value, ', ' ORDER BY v.name)
            FROM run_params v WHERE v.run_id = q.run_id AND v.name = ANY(w.differing))), '') AS words,
        ARRAY(SELECT v.number FROM run_params v WHERE v.run_id = q.run_id AND v.name = ANY(w.differing) ORDER BY v.name) AS numbers) o
    WHERE {RUNS.replace("r.", "q.")} OFFSET 0) c) n)"""
BY_PARAMETER = f"(SELECT min(v.%s) FROM run_params v WHERE v.run_id = r.run_id AND {one_of('v.name', 'by')})"
GROUP = f"""
    CASE WHEN {one_of("'setting'", "by")} THEN r.setting WHEN {one_of("'algorithm'", "by")} THEN r.cca
    ELSE coalesce({BY_PARAMETER % "value"}, '–') END
"""

SELECT_RUNS = f"""
    SELECT r.run AS __value, CASE WHEN r.params ? 'cca' THEN r.label ELSE concat_ws(' ', nullif(r.cca, ''), r.label) END AS __text
    FROM runs r
    WHERE {one_of("r.experiment", "experiments")} AND r.status = 'complete'
    ORDER BY {RUN_ORDER} LIMIT 200
"""
SELECT_FIRST = f"""
    SELECT r.run FROM runs r
    WHERE {one_of("r.experiment", "experiment")} AND r.status = 'complete'
    ORDER BY {CHOSEN} DESC, {RUN_ORDER} LIMIT 1
"""
SELECT_GROUPINGS = f"""
    SELECT name FROM (SELECT 'setting' AS name, 1 AS place UNION ALL SELECT 'algorithm', 2
    UNION ALL SELECT DISTINCT v.name, 3 FROM run_params v JOIN runs r USING (run_id)
    WHERE {one_of("r.experiment", "experiments")}) known
    GROUP BY 1 ORDER BY min(place), 1
"""
JAIN = f"""
    SELECT time, metric, sum(share) * sum(share) / nullif(count(*) * sum(share * share), 0) AS value FROM (
        SELECT $__timeGroup(t, $__interval) AS time, metric, flow, avg(goodput_mbps) AS share
        FROM (SELECT elapsed(p.t_s) AS t, r.name AS metric, p.flow, p.goodput_mbps
            FROM flow_points p JOIN {NAMED} r USING (run_id)
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
    FROM {POINTS} GROUP BY 1 ORDER BY 1
"""
QUANTILE_UNITS = {
    **{f"rtt_p{percent}_ms": [("unit", "ms")] for percent in (5, 50, 95)},
    **{f"goodput_p{percent}_mbps": [("unit", "Mbits")] for percent in (5, 50, 95)},
}
QUANTILE_WORDS = {
    "cca": ("Algorithm", 160), "points": ("Points", 100),
    **{f"rtt_p{percent}_ms": (f"RTT, {percent} %", 0) for percent in (5, 50, 95)},
    **{f"goodput_p{percent}_mbps": (f"Goodput, {percent} %", 0) for percent in (5, 50, 95)},
}  # fmt: skip
INTERVAL = (
    "Mean over the runs of a group (variable Grouped by); where they differ in their seeds alone, with the 95 % confidence interval as a "
    "band (Student's t; none for one run). One algorithm's other settings are dashed or dotted, as their names say. A "
    "group that mixes settings says how many, and has no band. Invalid runs do not "
    "count, of runs with the same packets one."
)


HEIGHT = 10
"""Of charts with a dozen names below them: beside it, they would take half of a chart in a window of 900 pixels."""


def coloured(*arguments: Any, **more: Any) -> Any:
    """Lines of runs."""
    title, description, *rest = arguments
    said = f"{description} The legend has one seed of each setting, whose others look alike; the tooltip has each."
    return first_seed_listed(
        dashed_settings(algorithm_colours(lines(title, said, *rest, points=False, height=HEIGHT, **more)))
    )


def grouped(title: str, unit: str, value: str) -> Any:
    return dashed_settings(banded(lines(title, INTERVAL, unit, by_group(value), points=False, height=HEIGHT)))


def over_time(value: str, finest_ms: str = "") -> Query:
    return Query(bucketed(value, RUNS, metric="r.name", runs=NAMED, finest_ms=finest_ms), series=True)


def by_group(value: str) -> Query:
    """Means over the runs of a group, with their intervals; each run counts once per bucket, and of those with the same packets one."""
    runs = f"""(SELECT DISTINCT ON (r.params, coalesce(r.environment->>'packets', r.run_id::text)) r.run_id, r.finest_ms, r.params,
            {GROUP.strip()} AS name, {BY_PARAMETER % "number"} AS number FROM {NAMED} r WHERE {COUNTED}
            ORDER BY r.params, coalesce(r.environment->>'packets', r.run_id::text), r.run_id)"""
    means = f"""WITH chosen AS {runs},
        of_runs AS (SELECT $__timeGroup(t, $__interval) AS time, name, run_id, {value} AS value
            FROM (SELECT elapsed(p.t_s) AS t, r.name, p.* FROM flow_points p JOIN chosen r USING (run_id) WHERE {LEGIBLE}) points
            GROUP BY 1, 2, 3 HAVING {value} IS NOT NULL),
        groups AS (SELECT name, dense_rank() OVER (ORDER BY min(number), name) AS place, min(number) AS number,
            count(DISTINCT params) AS settings FROM chosen GROUP BY 1)
        SELECT o.time, CASE WHEN g.number IS NULL THEN o.name ELSE {in_place("g.place", "o.name")} END
            || CASE WHEN g.settings > 1 THEN '{MORE}mean of ' || g.settings || ' settings' ELSE '' END AS name,
            avg(o.value) AS mean, CASE WHEN g.settings = 1 THEN stddev_samp(o.value) END AS deviation, count(*) AS runs
        FROM of_runs o JOIN groups g ON g.name = o.name GROUP BY 1, 2, g.settings"""
    return Query(edges(means, "time"), series=True)


STEPS = 60


def distribution(title: str, of: str, column: str) -> Any:
    """The share of points of one second at or below each value, by algorithm."""
    query = f"""
        WITH points AS (SELECT series, value FROM (
            SELECT r.cca AS series, p.{column} AS value FROM {POINTS} WHERE p.{column} IS NOT NULL AND r.cca <> ''
            ORDER BY md5(p.t_s::text || r.run) LIMIT 10000) drawn),
        steps AS (SELECT min(value) + (max(value) - min(value)) * i / {STEPS} AS at
            FROM points, generate_series(0, {STEPS}) i GROUP BY i)
        (SELECT s.at, p.series, avg(CASE WHEN p.value <= s.at THEN 100.0 ELSE 0.0 END) AS value
        FROM points p CROSS JOIN (SELECT DISTINCT at FROM steps) s GROUP BY 1, 2 ORDER BY 1, 2 LIMIT {STEPS * 200})
        UNION ALL SELECT 0, '{NO_DATA}', 0 WHERE NOT EXISTS (SELECT FROM points)
    """
    said = (
        "The share of the points whose value is at or below the value: further left is less, steeper is steadier. Points of one second, or "
        "of the panel's interval where that is longer; at most 10 000 of them."
    )
    return chart(
        title,
        said,
        "none",
        Query(query),
        ("at", of, "none"),
        y_label="Share of the points, %",
        joined=True,
        marks=False,
    ).max(100)


def dashboard() -> Any:
    page = board(
        "compare", "Any runs laid over each other, aligned at their start, by algorithm or parameter.", elapsed_s=60
    )
    variables = [
        *several(SELECT_COMPLETE, Variable("runs", "Runs", SELECT_RUNS, multi=True), first=CHOSEN, every=False),
        Variable("run", "First run", SELECT_FIRST, hidden=True),
        Variable("by", "Grouped by", SELECT_GROUPINGS),
    ]
    panels = [
        grouped("Goodput by group", "Mbits", "avg(goodput_mbps)").min(0),
        grouped("Round-trip time by group", "ms", "avg(rtt_ms)"),
        coloured(
            "Throughput",
            "Mean over each run's flows, of wire bytes per interval.",
            "Mbits",
            over_time("avg(throughput_mbps)", LEGIBLE_MS),
        ),
        coloured(
            "Congestion window", "Mean over each run's flows.", "none", over_time("avg(cwnd_packets)"), label="packets"
        ),
        coloured("Round-trip time", "Mean of the samples from the capture.", "ms", over_time("avg(rtt_ms)")),
        coloured("In flight", "Maximum over each run's flows.", "bytes", over_time("max(in_flight_bytes)")),
        coloured(
            "Jain's index",
            "Of the flows' goodputs in each interval (Kato 2012 eq 5.2): 1 is fair, 1/n is one flow with everything. "
            "Runs of one flow are always 1.",
            "none",
            Query(JAIN, series=True),
        )
        .min(0)
        .max(1),
        chart(
            "Throughput against delay",
            "Goodput and RTT of each run, a point each, by algorithm: up and to the left is better. Means over the run's flows, "
            "each over its own time.",
            "none",
            Query(THROUGHPUT_AGAINST_DELAY),
            ("rtt_ms", "Mean RTT, ms", "none"),
            y_label="Goodput of a flow, Mbit/s",
            joined=False,
            height=HEIGHT,
        ),
        distribution("Distribution of RTT by algorithm", "Round-trip time, ms", "rtt_ms"),
        distribution("Distribution of goodput by algorithm", "Goodput, Mbit/s", "goodput_mbps"),
        rows(
            "Quantiles",
            "Quantiles of RTT and goodput over points of one second (or of the panel's interval, where that is longer), "
            "by algorithm.",
            Query(QUANTILES),
            height=6,
            overrides=QUANTILE_UNITS,
            columns=QUANTILE_WORDS,
        ),
    ]
    return assembled(page, variables, panels)
