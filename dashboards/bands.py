# SPDX-License-Identifier: Apache-2.0
"""Means with their 95 % intervals as bands, and charts whose horizontal axis is a number.

Grafana ties a band's edges by their fixed names, and the groups to draw are only known to the database. So each group gets a slot,
1 to SLOTS, and its edges are "1 low 95 %" and "1 high 95 %". Where all groups are algorithms, the slot has the algorithm's colour and
the mean its name; else slots go by the groups' order and the mean is "1: 250p". Groups beyond the last slot have their mean only.
"""

from __future__ import annotations

from typing import Any

from grafana_foundation_sdk.builders import common, xychart
from grafana_foundation_sdk.models import common as model
from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models import xychart as shown

from analysis.palette import ALGORITHMS, SCREEN
from dashboards.looks import JOINER, MORE, algorithm_colours, natural
from dashboards.parts import NO_DATA, Query, framed, legend

SLOTS = 24
LOW, HIGH = "low 95 %", "high 95 %"
HIDDEN = ("custom.hideFrom", {"legend": True, "tooltip": False, "viz": False})


def edges(means: str, keys: str, *, named: bool = False) -> str:
    """SQL: the rows of `means` as three: a mean and the ends of its 95 % confidence interval (Student's t over the runs).

    means: SQL with the columns of `keys`, name, mean, deviation (of the sample) and runs. Columns: those of `keys`, metric, value
    named: the edges have their mean's name before them, for a chart that does not fill between two fixed names
    """
    owner = f"d.name || '{MORE}'" if named else "d.slot || ' '"
    known = ", ".join(f"'{name}'" for name in ALGORITHMS)
    name = 'c.name COLLATE "C"'
    rank = natural(f"(dense_rank() OVER (ORDER BY {name}))::text")
    return f"""
        SELECT {keys}, v.metric, v.value FROM (
            SELECT c.*, coalesce(t.t975, 1.96) * c.deviation / sqrt(c.runs) AS half,
                CASE WHEN bool_and(c.place IS NOT NULL) OVER () THEN c.colour + 1 + {len(SCREEN)} *
                    (dense_rank() OVER (PARTITION BY c.colour ORDER BY {name}) - 1)
                    ELSE dense_rank() OVER (ORDER BY {name}) END AS slot,
                CASE WHEN bool_and(c.place IS NOT NULL) OVER () THEN '' ELSE {rank} || ': ' END AS number
            FROM (SELECT m.*, n.place, (n.place - 1) % {len(SCREEN)} AS colour FROM ({means}) m
                CROSS JOIN LATERAL (SELECT array_position(ARRAY[{known}], split_part(m.name, '{MORE}', 1)) AS place) n) c
            LEFT JOIN student_t t ON t.df = c.runs - 1) d
        CROSS JOIN LATERAL (VALUES (d.number || d.name, d.mean),
            (CASE WHEN d.slot <= {SLOTS} THEN {owner} || '{LOW}' END, d.mean - d.half),
            (CASE WHEN d.slot <= {SLOTS} THEN {owner} || '{HIGH}' END, d.mean + d.half)) v(metric, value)
        WHERE v.metric IS NOT NULL AND v.value IS NOT NULL ORDER BY 1, 2"""


ABSENT = -1e12
"""What stands in a chart over a number where a series has no value. An XY chart draws null as 0 (`null >= min` is true in
JavaScript where min <= 0; grafana#82209); below the axis' fixed start it draws nothing, and does not stretch the axis."""


def completed(points: str, x: str) -> str:
    """SQL: the rows of `points` (columns x, series, value; values from 0 on), and ABSENT for each pair that has no row.

    Where there is none at all, a series that is not drawn and says so in the legend: an XY chart without one has words of its own.
    """
    return f"""
        WITH points AS ({points})
        (SELECT g.{x}, s.series, coalesce(p.value, {ABSENT:.0f}) AS value
        FROM (SELECT DISTINCT {x} FROM points) g CROSS JOIN (SELECT DISTINCT series FROM points) s
        LEFT JOIN points p ON p.{x} = g.{x} AND p.series = s.series ORDER BY 1, 2 LIMIT 20000)
        UNION ALL SELECT 0, '{NO_DATA}', 0 WHERE NOT EXISTS (SELECT FROM points)"""


def dashed(panel: Any) -> Any:
    """The edges, `named`, as dashed lines: an XY chart fills nothing, and its legend of 9.4 lists every series."""
    style = (("custom.show", "lines"), ("custom.lineStyle", {"fill": "dash", "dash": [6, 4]}), HIDDEN)
    return algorithm_colours(panel.override_by_regexp(f"/{MORE}({LOW}|{HIGH})$/", _values(*style)))


def banded(panel: Any) -> Any:
    """Colour the slots, and fill between their edges."""
    for slot in range(1, SLOTS + 1):
        colour = SCREEN[(slot - 1) % len(SCREEN)]
        fixed = ("color", {"mode": "fixed", "fixedColor": colour})
        panel = panel.override_by_regexp(f"/^({JOINER}*){slot}: /", _values(fixed))
        for edge in (LOW, HIGH):
            style: list[tuple[str, Any]] = [("custom.lineWidth", 0)]
            if edge == HIGH:
                style += [("custom.fillBelowTo", f"{slot} {LOW}"), ("custom.fillOpacity", 20)]
            panel = panel.override_by_name(f"{slot} {edge}", _values(fixed, HIDDEN, *style))
    return algorithm_colours(panel)


def chart(
    title: str,
    description: str,
    unit: str,
    query: Query,
    x: tuple[str, str, str],
    *,
    y_label: str,
    x_shown: str = "",
    listed: bool = True,
    joined: bool,
    marks: bool = True,
    width: int = 12,
    height: int = 8,
) -> Any:
    """Values against a number, as one series per name, on an axis that starts at 0.

    query: a table with the columns of x[0] (a number), series and value, `completed`; x: that column, the axis' name and its unit
    x_shown: what the axis is called where variables are in it, which Grafana puts into a name but not into a label
    listed: the series stand in a legend
    joined: a line through each series' points, from left to right; marks: the points too
    The labels say the units: an XY chart of 9.4 writes none at its ticks, and scales the numbers.
    """
    column, label, x_unit = x
    show = shown.ScatterShow.POINTS_AND_LINES if joined else shown.ScatterShow.POINTS
    show = show if marks else shown.ScatterShow.LINES
    panel = xychart.Panel().series_mapping(shown.SeriesMapping.AUTO).show(show).line_width(1)
    panel = panel.legend(legend() if listed else legend().show_legend(False))
    axis = xychart.XYDimensionConfig().frame(0)
    panel = panel.dims(axis if x_shown else axis.x(label)).series([])  # without a name: the first field
    panel = panel.tooltip(common.VizTooltipOptions().mode(model.TooltipDisplayMode.SINGLE).sort(model.SortOrder.NONE))
    panel = panel.point_size(common.ScaleDimensionConfig().fixed(7).min(1).max(20))
    panel = framed(panel.min(0).axis_label(y_label), title, description, (query,), width, height, unit)
    matrix = f"{column}\\series"
    for kind, options in (
        ("groupingToMatrix", {"columnField": "series", "rowField": column, "valueField": "value", "emptyValue": "null"}),
        ("convertFieldType", {"fields": {}, "conversions": [{"targetField": matrix, "destinationType": "number"}]}),
        ("organize", {"excludeByName": {}, "indexByName": {}, "renameByName": {matrix: label}}),
    ):  # fmt: skip
        panel = panel.with_transformation(models.DataTransformerConfig(id_val=kind, options=options))
    unseen = ("custom.hideFrom", {"legend": False, "tooltip": True, "viz": True})
    panel = panel.override_by_name(NO_DATA, _values(unseen))
    named = ("displayName", x_shown) if x_shown else ("custom.axisLabel", label)
    return algorithm_colours(panel).override_by_name(
        label, _values(("unit", x_unit), ("custom.axisLabel", ""), named, ("min", None), ("max", None))
    )


def _values(*properties: tuple[str, Any]) -> list[models.DynamicConfigValue]:
    return [models.DynamicConfigValue(id_val=name, value=value) for name, value in properties]
