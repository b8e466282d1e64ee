# SPDX-License-Identifier: Apache-2.0
"""What the dashboards are made of: queries, panels, variables and annotations with this project's defaults.

The JSON is that of Grafana 9.4, which later versions read: queries as raw SQL for the PostgreSQL data source, macros with plain
column names as arguments, every variable as ${name:sqlstring}, so that no value can end its quotes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from grafana_foundation_sdk.builders import barchart, common, stat, table, timeseries
from grafana_foundation_sdk.builders.dashboard import Dashboard, TimePicker
from grafana_foundation_sdk.cog import variants
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import common as model
from grafana_foundation_sdk.models import dashboard as models

from dashboards.addresses import TITLES, ZERO_S, uid
from dashboards.links import Raw, bar
from dashboards.looks import algorithm_colours

SOURCE = {"type": "postgres", "uid": "warpbed"}
SCHEMA_VERSION = 37
COUNTED = "r.status = 'complete' AND r.verdict <> 'invalid'"
NO_DATA = "no data: the run has no captures, or nothing is loaded yet (./warpbed store load results)"
NO_ROWS = "nothing here: no row for this choice, or nothing is loaded yet (./warpbed store load results)"
"""In the middle of a table without a row."""
NO_BARS = "no data"
"""Below the empty place of a bar chart's bars."""
NOTHING = "–"
"""In a cell of a table, and where a number stands alone: the value is missing there, whatever else there is."""


class Query(variants.Dataquery):
    """A query in SQL. `series`: columns time, metric, value become one line per metric."""

    def __init__(self, sql: str, ref: str = "A", *, series: bool = False) -> None:
        self.sql, self.ref, self.series = " ".join(sql.split()), ref, series

    def build(self) -> Query:
        return self

    def to_json(self) -> dict[str, Any]:
        return {
            "refId": self.ref, "datasource": SOURCE, "rawQuery": True, "rawSql": self.sql, "editorMode": "code",
            "format": "time_series" if self.series else "table",
        }  # fmt: skip


WHOLE: list[tuple[str, Any]] = [("unit", "string")]
"""Of a column of whole numbers that may be above 2^53, which a browser's numbers do not hold: texts that are shown as they are."""


INSPECT: list[tuple[str, Any]] = [("custom.inspect", True)]
"""Of a column whose texts may be longer than it is wide: a click shows them whole."""


SECONDS = "suffix: s"
"""A unit of times within a run: seconds, whatever their number (Grafana's own turns 60.6 s into 1.01 min)."""
MINUTE: list[tuple[str, Any]] = [("unit", "time:YYYY-MM-DD HH:mm")]
"""Of a column of dates: to the minute."""


FIRST_METRICS = (
    "array_position(ARRAY['utilization', 'goodput_mbps', 'queue_mean_packets', 'rtt_mean_ms', 'jain_index'], m.name)"
)
"""SQL to order by: what people ask for first, before the others in their alphabet (null comes last)."""


RUN_ORDER = "r.cca, ARRAY(SELECT v.number FROM run_params v WHERE v.run_id = r.run_id ORDER BY v.name), r.params::text, r.seed, r.run"
"""SQL to order runs (r) by: those of an algorithm by their parameters as numbers, then by their seeds."""


def one_of(column: str, variable: str) -> str:
    """SQL: a column has one of a variable's values. Grafana puts in nothing for an empty list, and for All where one value is
    expected: `IN ()` and `= ` are errors then, an array without elements is not."""
    return f"{column} = ANY(ARRAY[${{{variable}:sqlstring}}]::text[])"


def framed(
    panel: Any,
    title: str,
    description: str,
    queries: tuple[Query, ...],
    width: int,
    height: int,
    unit: str,
    missing: str = NO_DATA,
) -> Any:
    """A panel with what every one has. missing: what stands in place of a value that is not there"""
    panel = (
        panel.title(title).description(description).datasource(models.DataSourceRef(type_val=SOURCE["type"],
            uid=SOURCE["uid"]))
        .span(width).height(height).unit(unit).no_value(missing)
    )  # fmt: skip
    for query in queries:
        panel = panel.with_target(query)
    return panel


def legend() -> Any:
    return (
        common.VizLegendOptions()
        .show_legend(True)
        .placement(model.LegendPlacement.BOTTOM)
        .display_mode(model.LegendDisplayMode.LIST)
    )


BARS = 120
"""At most, over the width of a panel: bars that are wider than the marks of what they count."""


def lines(
    title: str,
    description: str,
    unit: str,
    *queries: Query,
    width: int = 12,
    height: int = 8,
    label: str = "",
    bars: bool = False,
    points: bool = True,
    joined: bool = False,
) -> Any:
    """Values over time. points: one that stands alone is drawn; joined: values are far apart, and lines go from each to the next"""
    panel = (
        timeseries.Panel()
        .line_width(1)
        .fill_opacity(60 if bars else 0)
        .show_points(
            model.VisibilityMode.ALWAYS
            if joined
            else model.VisibilityMode.AUTO
            if points
            else model.VisibilityMode.NEVER
        )
        .span_nulls(joined)
    )
    panel = (
        panel.draw_style(model.GraphDrawStyle.BARS if bars else model.GraphDrawStyle.LINE)
        .axis_label(label)
        .legend(legend())
    )
    if bars:
        panel = panel.max_data_points(BARS)
    panel = panel.tooltip(common.VizTooltipOptions().mode(model.TooltipDisplayMode.MULTI).sort(model.SortOrder.NONE))
    return framed(panel, title, description, queries, width, height, unit)


def rows(title: str, description: str, query: Query, *, width: int = 24, height: int = 8, unit: str = "none",
         overrides: dict[str, list[tuple[str, Any]]] | None = None,
         columns: Mapping[str, tuple[str, int]] | None = None, missing: str = NO_ROWS) -> Any:  # fmt: skip
    """A table. overrides: column → (property, value); columns: column → its words for people, and its width in pixels (0: what is left);
    missing: what a table without a row says (its cells have NOTHING)"""
    panel = framed(table.Panel().show_header(True), title, description, (query,), width, height, unit, missing)
    panel = panel.override_by_regexp("/.*/", [models.DynamicConfigValue(id_val="noValue", value=NOTHING)])
    merged = {name: list(properties) for name, properties in (overrides or {}).items()}
    for name, (heading, pixels) in (columns or {}).items():
        merged.setdefault(name, []).append(("displayName", heading))
        if pixels:
            merged[name].append(("custom.width", pixels))
    for name, properties in merged.items():
        panel = panel.override_by_name(
            name, [models.DynamicConfigValue(id_val=key, value=value) for key, value in properties]
        )
    return panel


def matrix(panel: Any, row: str, column: str, value: str) -> Any:
    """A column for each value of a query's column; the field with the rows is then named row\\column."""
    options = {"columnField": column, "rowField": row, "valueField": value, "emptyValue": "null"}
    return panel.with_transformation(models.DataTransformerConfig(id_val="groupingToMatrix", options=options))


def bars(title: str, description: str, unit: str, query: Query, x: str, *, width: int = 12, height: int = 9,
         colours: Mapping[str, str] | None = None, by: tuple[str, str] | None = None) -> Any:  # fmt: skip
    """Values by category. colours: column → colour; by: (column, value) gives bars side by side, by algorithm"""
    rows_or_one = f"(SELECT 1) one LEFT JOIN ({query.sql}) f ON true"  # a row in any case: without one Grafana has words of its own
    if by is not None:
        column, value = by
        sql = f"SELECT coalesce(f.{x}, '{NO_BARS}') AS {x}, coalesce(f.{column}, 'none') AS {column}, f.{value} FROM {rows_or_one}"
        return algorithm_colours(
            matrix(_bars(title, description, unit, Query(sql), f"{x}\\{column}", width, height), x, *by)
        )
    panel = _bars(title, description, unit, Query(f"SELECT f.* FROM {rows_or_one}"), x, width, height)
    for name, colour in (colours or {}).items():
        fixed = models.DynamicConfigValue(id_val="color", value={"mode": "fixed", "fixedColor": colour})
        panel = panel.override_by_name(name, [fixed])
    nothing = {"type": "special", "options": {"match": "null", "result": {"text": NO_BARS, "index": 0}}}
    return panel.override_by_name(x, [models.DynamicConfigValue(id_val="mappings", value=[nothing])])


def _bars(title: str, description: str, unit: str, query: Query, x: str, width: int, height: int) -> Any:
    panel = (
        barchart.Panel()
        .x_field(x)
        .show_value(model.VisibilityMode.AUTO)
        .group_width(0.7)
        .bar_width(0.9)
        .legend(legend())
    )
    panel = panel.fill_opacity(70).x_tick_label_rotation(-30).x_tick_label_max_length(40)
    return framed(panel, title, description, (query,), width, height, unit)


def number(
    title: str, description: str, unit: str, query: Query, *, width: int = 4, height: int = 4, text: bool = False
) -> Any:
    panel = stat.Panel().graph_mode(model.BigValueGraphMode.NONE).color_mode(model.BigValueColorMode.NONE)
    panel = panel.reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).fields("/.*/" if text else ""))
    return framed(panel, title, description, (query,), width, height, unit, NOTHING)


BUT_IN = "but_in"
"""Of an annotation: titles, which become the numbers of panels when these have them (dashboards.build)."""


class Marks(Builder[Any]):
    """Annotations from a query with the columns time, text and tags. but_in: panels' titles where they would cover what they mark
    (from Grafana 10 on; 9.4 draws them everywhere)"""

    def __init__(self, name: str, colour: str, sql: str, *, enable: bool = True, but_in: Sequence[str] = ()) -> None:
        self.content = {
            "name": name, "datasource": SOURCE, "enable": enable, "hide": False, "iconColor": colour,
            "target": Query(sql, "Anno").to_json(), BUT_IN: list(but_in),
        }  # fmt: skip

    def build(self) -> Any:
        return Raw(self.content)


def board(name: str, description: str, *, elapsed_s: float | None = None) -> Dashboard:
    """A dashboard with links to the others. elapsed_s: its time is a run's own, and so much of it is shown at first."""
    page = Dashboard(TITLES[name]).uid(uid(name)).description(description).tags(["warpbed"]).timezone("utc").editable()
    page = page.tooltip(models.DashboardCursorSync.CROSSHAIR)
    if elapsed_s is not None:
        page = page.time(_elapsed(0.0), _elapsed(elapsed_s))
    page = page.timepicker(TimePicker().hidden(elapsed_s is None))  # other queries ask for no time
    for link in bar(name):
        page = page.link(link)
    return page


def _elapsed(seconds: float) -> str:
    return datetime.fromtimestamp(ZERO_S + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def assembled(
    page: Dashboard, variables: Sequence[Builder[Any]], panels: Sequence[Any], marks: Sequence[Marks] = ()
) -> Dashboard:
    """A dashboard with its variables, its panels from left to right and top to bottom, and its annotations."""
    for variable in variables:
        page = page.with_variable(variable)
    for mark in marks:
        page = page.annotation(mark)
    for panel in panels:
        page = page.with_panel(panel)
    return page


LEGIBLE_MS = "least(1000, ($__unixEpochTo() - $__unixEpochFrom()) * 1000 / 60)"
"""Of rates: points of less than a round trip are a band of colour, so one second, and less where a shorter time is shown."""


def bucketed(
    value: str,
    source: str,
    *,
    metric: str = "flow",
    alike: str = "flow_points",
    runs: str = "runs",
    finest_ms: str = "",
) -> str:
    """A series of points in buckets of the panel's interval: reads about as many rows as it draws.

    value: an aggregate over columns of the points; source: the condition that names runs (r) and points (p)
    runs: the table of runs, or SQL in parentheses; finest_ms: SQL of a width below which points say little
    """
    wanted = f"greatest($__interval_ms, {finest_ms})" if finest_ms else "$__interval_ms"
    return f"""
        SELECT $__timeGroup(t, $__interval) AS time, metric, {value} AS value
        FROM (SELECT elapsed(p.t_s) AS t, {metric} AS metric, p.* FROM {alike} p JOIN {runs} r USING (run_id)
            WHERE {source} AND p.width_ms = width_ms(r.finest_ms, {wanted})
            AND p.t_s BETWEEN $__unixEpochFrom() - {ZERO_S} AND $__unixEpochTo() - {ZERO_S}) points
        GROUP BY 1, 2 HAVING {value} IS NOT NULL ORDER BY 1, 2
    """
