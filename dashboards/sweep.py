# SPDX-License-Identifier: Apache-2.0
"""Sweep: a metric against the parameters of an experiment."""

from __future__ import annotations

from typing import Any

from grafana_foundation_sdk.models import dashboard as models

from dashboards.addresses import ZERO_S
from dashboards.bands import chart, completed, dashed, edges
from dashboards.experiments import run_link, verdict_colours
from dashboards.parts import COUNTED, FIRST_METRICS, WHOLE, Query, assembled, bars, board, one_of, rows
from dashboards.variables import LATEST, Variable, length

EXPERIMENT = one_of("r.experiment", "experiment")
METRIC = one_of("m.name", "metric")
PARAMETER = one_of("p.name", "parameter")
HELD = f"""({one_of("'nothing'", "held")} OR EXISTS (SELECT FROM run_params h
    WHERE h.run_id = r.run_id AND {one_of("h.name", "held")} AND {one_of("h.value", "at")}))"""
# Runs with the same packets are one run, whatever their seeds.
ONCE = """r.run_id IN (SELECT min(u.run_id) FROM runs u WHERE u.status = 'complete' AND u.verdict <> 'invalid'
    GROUP BY u.experiment, u.params, coalesce(u.environment->>'packets', u.run_id::text))"""
# Where a cell mixes runs that differ in more than their seeds, their spread is no error of measurement: no interval.
CELLS = f"""
    SELECT r.cca, p.value AS parameter, p.number, avg(m.value) AS mean, count(*) AS runs, count(DISTINCT r.params) AS settings,
        CASE WHEN count(DISTINCT r.params) = 1 THEN stddev_samp(m.value) END AS deviation
    FROM runs r JOIN run_params p ON p.run_id = r.run_id AND {PARAMETER}
    JOIN run_metrics m ON m.run_id = r.run_id AND {METRIC}
    WHERE {EXPERIMENT} AND {COUNTED} AND {ONCE} AND {HELD} GROUP BY r.cca, p.value, p.number
"""
# Student's t by the cell's own number of runs (analysis.statistics)
STUDENT = f"""SELECT c.*, coalesce(t.t975, 1.96) * c.deviation / sqrt(c.runs) AS half
    FROM ({CELLS}) c LEFT JOIN student_t t ON t.df = c.runs - 1"""
# Values that are words stand at 1, 2, 3.
NUMBER = """CASE WHEN bool_and(c.number IS NOT NULL) OVER () THEN c.number
    ELSE dense_rank() OVER (ORDER BY c.number, c.parameter) END"""
MEANS = f"SELECT {NUMBER} AS parameter, c.cca AS name, c.mean, c.deviation, c.runs FROM ({CELLS}) c"

OF_EXPERIMENT = f"JOIN runs r USING (run_id) WHERE {EXPERIMENT}"
SELECT_EXPERIMENTS = f"""
    SELECT r.experiment FROM runs r JOIN run_params USING (run_id) WHERE r.status = 'complete' GROUP BY r.experiment ORDER BY {LATEST}, 1
"""
SELECT_METRICS = f"""
    SELECT m.name FROM run_metrics m {OF_EXPERIMENT} AND m.name NOT LIKE 'flows.%' GROUP BY 1 ORDER BY {FIRST_METRICS}, 1
"""
VARIES_FIRST = "count(DISTINCT v.value) = 1, v.name = 'cca'"
"""Order of parameters: those that have one value are last, the algorithm, which has its colours, after others that vary."""
SELECT_PARAMETERS = f"SELECT v.name FROM run_params v {OF_EXPERIMENT} GROUP BY 1 ORDER BY {VARIES_FIRST}, 1"
SELECT_SECOND = f"""
    SELECT v.name FROM run_params v {OF_EXPERIMENT} GROUP BY 1
    ORDER BY {one_of("v.name", "parameter")}, {VARIES_FIRST}, 1 DESC
"""
SELECT_HELD = f"""
    SELECT name FROM (SELECT 'nothing' AS name UNION SELECT v.name FROM run_params v {OF_EXPERIMENT}) known ORDER BY name <> 'nothing', name
"""
SELECT_AT = f"""
    SELECT v.value FROM run_params v {OF_EXPERIMENT} AND {one_of("v.name", "held")} GROUP BY 1 ORDER BY min(v.number), 1
"""
SELECT_UNIT = f"""
    SELECT coalesce(' (' || max(nullif(m.unit, '1')) || ')', '') AS unit FROM run_metrics m {OF_EXPERIMENT} AND {METRIC}
"""
SELECT_BASE = f"""
    SELECT CASE WHEN count(*) FILTER (WHERE v.number IS NULL) > 0 OR count(*) = 0 THEN ' (words, in their order)'
        WHEN min(v.value) LIKE '%bit' THEN ' (bit/s)' WHEN min(v.value) LIKE '%p' THEN ' (packets)'
        WHEN min(v.value) LIKE '%B' THEN ' (bytes)'
        WHEN min(v.value) LIKE '%\\%' THEN ' (of 1)' WHEN min(v.value) SIMILAR TO '[0-9.]+ ?(ns|us|ms|s|min|h)' THEN ' (s)'
        ELSE '' END AS base
    FROM run_params v {OF_EXPERIMENT} AND {one_of("v.name", "parameter")}
"""
AGAINST_PARAMETER = completed(
    f"SELECT parameter, metric AS series, value FROM ({edges(MEANS, 'parameter', named=True)}) x LIMIT 1000",
    "parameter",
)
BY_VALUE = f"""
    SELECT c.parameter, c.cca, c.mean FROM ({CELLS}) c ORDER BY c.number, c.parameter, c.cca LIMIT 200
"""
AS_NUMBERS = f"""
    SELECT c.cca, c.parameter, c.mean, c.mean - c.half AS low_95, c.mean + c.half AS high_95, c.runs, c.settings
    FROM ({STUDENT}) c ORDER BY c.cca, c.number, c.parameter LIMIT 500
"""
PAIRS = f"""
    SELECT p.value AS first, q.value AS second, avg(m.value) AS mean
    FROM runs r JOIN run_params p ON p.run_id = r.run_id AND {PARAMETER}
    JOIN run_params q ON q.run_id = r.run_id AND {one_of("q.name", "second")}
    JOIN run_metrics m ON m.run_id = r.run_id AND {METRIC}
    WHERE {EXPERIMENT} AND {COUNTED} AND {ONCE} AND {HELD}
    GROUP BY 1, 2, p.number, q.number ORDER BY p.number, 1, q.number, 2 LIMIT 2000
"""
EVERY_RUN = f"""
    SELECT r.experiment, r.run, r.cca, p.value AS parameter, r.seed::text AS seed, r.verdict, m.value,
        ({ZERO_S} + r.duration_s) * 1000 AS to_ms
    FROM runs r JOIN run_params p ON p.run_id = r.run_id AND {PARAMETER}
    JOIN run_metrics m ON m.run_id = r.run_id AND {METRIC}
    WHERE {EXPERIMENT} AND {HELD} ORDER BY r.cca, p.number, p.value, r.seed LIMIT 5000
"""


CELL_WORDS = {
    "cca": ("Algorithm", 85), "parameter": ("Parameter", 85), "mean": ("Mean", 70), "low_95": ("95 % from", 90),
    "high_95": ("95 % to", 80), "runs": ("Runs", 60), "settings": ("Settings", 80),
}  # fmt: skip


def heat_map() -> Any:
    panel = rows(
        "Heat map",
        "Mean of the metric for each pair of values of the two parameters.",
        Query(PAIRS),
        width=12,
        height=9,
    )
    columns = {"columnField": "second", "rowField": "first", "valueField": "mean"}
    panel = panel.with_transformation(models.DataTransformerConfig(id_val="groupingToMatrix", options=columns))
    panel = panel.override_by_regexp(
        "^(?!first).*$",
        [
            models.DynamicConfigValue(id_val="custom.displayMode", value="color-background-solid"),
            models.DynamicConfigValue(id_val="color", value={"mode": "continuous-BlPu"}),
            models.DynamicConfigValue(id_val="custom.minWidth", value=60),
        ],
    )
    corner = [
        models.DynamicConfigValue(id_val="displayName", value="${parameter:text} \\ ${second:text}"),
        models.DynamicConfigValue(id_val="custom.displayMode", value="auto"),
    ]
    return panel.override_by_name("first\\second", corner)


def dashboard() -> Any:
    page = board(
        "sweep",
        "A metric against the parameters of an experiment, with 95 % confidence intervals over its counted runs.",
    ).time("now-1y", "now")
    variables = [
        Variable("experiment", "Experiment", SELECT_EXPERIMENTS),
        Variable("metric", "Metric", SELECT_METRICS),
        Variable("parameter", "Parameter", SELECT_PARAMETERS),
        Variable("second", "Second parameter", SELECT_SECOND),
        Variable("held", "Held fixed", SELECT_HELD, description="A parameter of which only some values are drawn"),
        Variable("at", "at", SELECT_AT, multi=True),
        Variable("unit", "Unit of the metric", SELECT_UNIT, hidden=True),
        Variable("base", "Unit of the parameter", SELECT_BASE, hidden=True),
        length(EXPERIMENT),
    ]
    against_parameter = chart(
        "${metric:text}${unit:text} against ${parameter:text}${base:text}",
        "Mean over the counted runs of each value, with its 95 % confidence interval between dashed lines (Student's t; a value with one "
        "run has none, nor has one whose runs differ in another parameter: hold it fixed). Runs with the same packets count once. "
        "Parameters that are words stand at 1, 2, 3 in their order. Colours as in the chart beside it.",
        "none",
        Query(AGAINST_PARAMETER),
        ("parameter", "Value of the parameter", "none"),
        x_shown="${parameter:text}${base:text}",
        y_label="Mean of the runs",
        listed=False,
        joined=True,
        width=16,
        height=11,
    )
    panels = [
        dashed(against_parameter),
        bars(
            "${metric:text}${unit:text} by value",
            "The same means side by side, each value as the experiment file has it.",
            "none",
            Query(BY_VALUE),
            "parameter",
            by=("cca", "mean"),
            width=8,
            height=11,
        ),
        rows(
            "Means as numbers",
            "The means with their 95 % confidence intervals. Settings: how many settings, which differ in another parameter, a mean mixes.",
            Query(AS_NUMBERS),
            width=12,
            height=9,
            columns=CELL_WORDS,
        ),
        heat_map(),
        rows(
            "Runs",
            "Every run's value; suspect runs count, invalid and failed ones do not. A click on its name opens it.",
            Query(EVERY_RUN),
            width=24,
            height=9,
            overrides={
                **verdict_colours(),
                "seed": WHOLE,
                "run": [run_link()],
                "experiment": [("custom.hidden", True)],
                "to_ms": [("custom.hidden", True)],
            },
            columns={
                "run": ("Run", 300),
                "cca": ("Algorithm", 140),
                "parameter": ("Parameter", 140),
                "seed": ("Seed", 200),
                "verdict": ("Verdict", 100),
                "value": ("Value", 0),
            },
        ),
    ]
    return assembled(page, variables, panels)
