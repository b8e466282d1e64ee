# SPDX-License-Identifier: Apache-2.0
"""Campaign: measurements of real paths over days."""

from __future__ import annotations

from typing import Any

from dashboards.parts import Query, Variable, assembled, bars, board, lines, number, rows

# A campaign's transfers are runs; their clock is the measured hosts' own.
FLOWS = """(SELECT r.run_id, r.experiment, r.run, r.verdict, r.started_at + f.start_s * interval '1 s' AS at,
        f.src || '→' || f.dst AS path, f.cca, coalesce(p.value, 'unlimited') AS size, p.number AS size_bytes,
        f.goodput_mbps, f.rtt_min_ms, f.rtt_mean_ms, coalesce(f.completion_s, f.end_s - f.start_s) AS completion_s,
        f.packets, f.retransmitted_packets, f.retransmitted_packets::float8 / nullif(f.packets, 0) AS loss
    FROM flows f JOIN runs r USING (run_id) LEFT JOIN run_params p ON p.run_id = r.run_id AND p.name = 'size'
    WHERE r.status = 'complete') f"""
WHERE = """
    f.experiment = ${experiment:sqlstring} AND f.path IN (${path:sqlstring}) AND f.cca IN (${cca:sqlstring})
    AND f.size IN (${size:sqlstring}) AND $__timeFilter(f.at)"""
LOSS = "sum(f.retransmitted_packets)::float8 / nullif(sum(f.packets), 0)"
MEDIAN_COMPLETION = "percentile_cont(0.5) WITHIN GROUP (ORDER BY f.completion_s)"

SELECT_CAMPAIGNS = """
    SELECT experiment FROM runs WHERE status = 'complete' GROUP BY 1 ORDER BY bool_or(host = 'wan') DESC, 1
"""
TRANSFERS = f"SELECT count(*) AS transfers FROM {FLOWS} WHERE {WHERE}"
MEDIAN_GOODPUT = f"""
    SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY f.goodput_mbps) AS goodput_mbps
    FROM {FLOWS} WHERE {WHERE}
"""
COMPLETION_BY_SIZE = f"""
    SELECT f.size || ' ' || f.cca AS transfer, {MEDIAN_COMPLETION} AS completion_s
    FROM {FLOWS} WHERE {WHERE}
    GROUP BY f.size, f.size_bytes, f.cca ORDER BY f.size_bytes, f.cca LIMIT 60
"""
PATHS = f"""
    SELECT f.path, f.size, f.cca, count(*) AS transfers, avg(f.goodput_mbps) AS goodput_mbps,
        stddev_samp(f.goodput_mbps) AS deviation_mbps, {MEDIAN_COMPLETION} AS completion_s, {LOSS} AS loss,
        min(f.rtt_min_ms) AS rtt_min_ms
    FROM {FLOWS} WHERE {WHERE}
    GROUP BY f.path, f.size, f.size_bytes, f.cca ORDER BY f.path, f.size_bytes, f.cca LIMIT 1000
"""
PATH_UNITS: dict[str, list[tuple[str, Any]]] = {
    "goodput_mbps": [("unit", "Mbits")],
    "deviation_mbps": [("unit", "Mbits")],
    "completion_s": [("unit", "s")],
    "loss": [("unit", "percentunit")],
    "rtt_min_ms": [("unit", "ms")],
}


def over_time(value: str, metric: str) -> Query:
    return Query(
        f"""
        SELECT $__timeGroup(at, $__interval) AS time, metric, {value} AS value
        FROM (SELECT {metric} AS metric, f.* FROM {FLOWS} WHERE {WHERE}) points
        GROUP BY 1, 2 HAVING {value} IS NOT NULL ORDER BY 1
        """,
        series=True,
    )


def by_hour(value: str, name: str) -> Query:
    return Query(f"""
        SELECT lpad(extract(hour FROM f.at)::text, 2, '0') || ' h' AS hour, {value} AS {name}, count(*) AS transfers
        FROM {FLOWS} WHERE {WHERE} GROUP BY 1 ORDER BY 1
    """)


def choice(column: str, label: str) -> Variable:
    """A variable that narrows the campaign's transfers."""
    chosen = f"SELECT DISTINCT f.{column} FROM {FLOWS} WHERE f.experiment = ${{experiment:sqlstring}} ORDER BY 1"
    return Variable(column, label, chosen, multi=True)


def dashboard() -> Any:
    page = board(
        "campaign", "Transfers over real paths for days: time of day, size, algorithm, path, loss and completion time."
    ).time("now-1y", "now")
    variables = [
        Variable("experiment", "Campaign", SELECT_CAMPAIGNS),
        choice("path", "Path"),
        choice("cca", "Algorithm"),
        choice("size", "Size"),
    ]
    panels = [
        number("Transfers", "Transfers in the time shown.", "short", Query(TRANSFERS), width=6),
        number("Median goodput", "Of all transfers shown.", "Mbits", Query(MEDIAN_GOODPUT), width=6),
        number(
            "Retransmitted",
            "Share of the packets that were sent again.",
            "percentunit",
            Query(f"SELECT {LOSS} AS loss FROM {FLOWS} WHERE {WHERE}"),
            width=6,
        ),
        number(
            "Suspect or invalid",
            "Transfers whose verdict is not valid.",
            "short",
            Query(f"{TRANSFERS} AND f.verdict <> 'valid'"),
            width=6,
        ),
        lines(
            "Goodput by algorithm",
            "Mean over the transfers of each interval.",
            "Mbits",
            over_time("avg(goodput_mbps)", "f.cca"),
        ),
        lines(
            "Completion time by size",
            "Mean over the transfers of each interval, from the first packet to the last ACK; the length of flows that have "
            "no size.",
            "s",
            over_time("avg(completion_s)", "f.size"),
        ),
        lines(
            "Retransmitted by path",
            "Packets sent again over packets sent.",
            "percentunit",
            over_time("sum(retransmitted_packets)::float8 / nullif(sum(packets), 0)", "f.path"),
        ),
        lines(
            "Least round-trip time by path",
            "A change of it is a change of the path.",
            "ms",
            over_time("min(rtt_min_ms)", "f.path"),
        ),
        bars(
            "Goodput by time of day",
            "Mean over the transfers that started in each hour (UTC).",
            "Mbits",
            by_hour("avg(f.goodput_mbps)", "goodput_mbps"),
            "hour",
        ),
        bars(
            "Completion time by size and algorithm",
            "Median over the transfers; the most frequent 60 pairs.",
            "s",
            Query(COMPLETION_BY_SIZE),
            "transfer",
        ),
        rows("Paths", "Each path, size and algorithm.", Query(PATHS), height=10, overrides=PATH_UNITS),
    ]
    return assembled(page, variables, panels)
