# SPDX-License-Identifier: Apache-2.0
"""Campaign: the same transfers again and again, for days."""

from __future__ import annotations

from typing import Any

from dashboards.addresses import ZERO_S
from dashboards.looks import algorithm_colours, in_place
from dashboards.parts import Query, assembled, bars, board, lines, number, one_of, rows
from dashboards.variables import Variable, length

# A campaign's transfers are runs. Their clock is the measured hosts' own, or the campaign's where it is in virtual time, in which
# each transfer begins at the same instant. Between two hosts of an experiment that names no receiver there is one path.
FLOWS = f"""(SELECT r.run_id, r.experiment, r.run, r.verdict,
        coalesce(r.clock_at, r.started_at) + f.start_s * interval '1 s' AS clock,
        elapsed(f.start_s + extract(epoch FROM coalesce(r.clock_at, r.started_at)
            - min(coalesce(r.clock_at, r.started_at)) OVER (PARTITION BY r.experiment))::float8) AS at,
        coalesce(t.value, f.src || '→' || f.dst) AS receiver, f.cca, coalesce(p.value, 'unlimited') AS size, p.number AS size_bytes,
        dense_rank() OVER (ORDER BY p.number, p.value) AS size_place,
        f.goodput_mbps, f.rtt_min_ms, f.rtt_mean_ms, coalesce(f.completion_s, f.end_s - f.start_s) AS completion_s,
        f.packets, f.retransmitted_packets, f.retransmitted_packets::float8 / nullif(f.packets, 0) AS loss
    FROM flows f JOIN runs r USING (run_id) LEFT JOIN run_params p ON p.run_id = r.run_id AND p.name = 'size'
    LEFT JOIN run_params t ON t.run_id = r.run_id AND t.name = 'receiver'
    WHERE r.status = 'complete' AND {one_of("r.experiment", "experiment")}) f"""
WHERE = f"""
    {one_of("f.receiver", "receiver")} AND {one_of("f.cca", "cca")} AND {one_of("f.size", "size")} AND $__timeFilter(f.at)"""
LOSS = "sum(f.retransmitted_packets)::float8 / nullif(sum(f.packets), 0)"
MEDIAN_COMPLETION = "percentile_cont(0.5) WITHIN GROUP (ORDER BY f.completion_s)"

SELECT_CAMPAIGNS = """
    SELECT experiment FROM runs JOIN run_params p USING (run_id) WHERE status = 'complete' AND p.name = 'receiver'
    GROUP BY 1 ORDER BY max(coalesce(made_at, ingested_at)) DESC, 1
"""
TRANSFERS = f"SELECT count(*) AS transfers FROM {FLOWS} WHERE {WHERE}"
SHOWN = f"""
    SELECT s.transfers || CASE WHEN s.transfers < t.every THEN ' of ' || t.every ELSE '' END AS transfers
    FROM ({TRANSFERS}) s CROSS JOIN (SELECT count(*) AS every FROM {FLOWS}) t
"""
MEDIAN_GOODPUT = f"""
    SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY f.goodput_mbps) AS goodput_mbps
    FROM {FLOWS} WHERE {WHERE}
"""
COMPLETION_BY_SIZE = f"""
    SELECT f.size, f.cca, {MEDIAN_COMPLETION} AS completion_s
    FROM {FLOWS} WHERE {WHERE}
    GROUP BY f.size, f.size_bytes, f.cca ORDER BY f.size_bytes, f.cca LIMIT 60
"""
GOODPUT_BY_HOUR = f"""
    SELECT lpad(extract(hour FROM f.clock)::text, 2, '0') || ' h' AS hour, f.cca, avg(f.goodput_mbps) AS goodput_mbps
    FROM {FLOWS} WHERE {WHERE}
    GROUP BY 1, 2 ORDER BY 1, 2 LIMIT 1000
"""
PATHS = f"""
    SELECT f.receiver, f.size, f.cca, count(*) AS transfers, avg(f.goodput_mbps) AS goodput_mbps,
        stddev_samp(f.goodput_mbps) AS deviation_mbps, {MEDIAN_COMPLETION} AS completion_s, {LOSS} AS loss,
        min(f.rtt_min_ms) AS rtt_min_ms
    FROM {FLOWS} WHERE {WHERE}
    GROUP BY f.receiver, f.size, f.size_bytes, f.cca ORDER BY f.receiver, f.size_bytes, f.cca LIMIT 1000
"""
PATH_UNITS: dict[str, list[tuple[str, Any]]] = {
    "goodput_mbps": [("unit", "Mbits")],
    "deviation_mbps": [("unit", "Mbits")],
    "completion_s": [("unit", "s")],
    "loss": [("unit", "percentunit")],
    "rtt_min_ms": [("unit", "ms")],
}


PATH_WORDS = {
    "receiver": ("Receiver", 160), "size": ("Size", 100), "cca": ("Algorithm", 120), "transfers": ("Transfers", 100),
    "goodput_mbps": ("Mean goodput", 0), "deviation_mbps": ("Std. deviation", 0),
    "completion_s": ("Median completion", 0),
    "loss": ("Retransmitted", 0), "rtt_min_ms": ("Min RTT", 0),
}  # fmt: skip


SELECT_END = f"""
    SELECT ceil(({ZERO_S} + 60 + coalesce(max(extract(epoch FROM f.at)) - {ZERO_S}, 0)) * 1000)::bigint::text FROM {FLOWS}
"""


def over_time(value: str, metric: str) -> Query:
    return Query(
        f"""
        SELECT $__timeGroup(at, $__interval) AS time, metric, {value} AS value
        FROM (SELECT {metric} AS metric, f.* FROM {FLOWS} WHERE {WHERE}) points
        GROUP BY 1, 2 HAVING {value} IS NOT NULL ORDER BY 1
        """,
        series=True,
    )


def choice(column: str, label: str, order: str = "1") -> Variable:
    """A variable that narrows the campaign's transfers."""
    chosen = f"SELECT f.{column} FROM {FLOWS} GROUP BY 1 ORDER BY {order}"
    return Variable(column, label, chosen, multi=True)


def dashboard() -> Any:
    page = board(
        "campaign",
        "Transfers for days: time of day, size, algorithm, receiver, loss and completion time. 2000-01-01 is the campaign's first day.",
        elapsed_s=7 * 86_400,
    )
    variables = [
        Variable("experiment", "Campaign", SELECT_CAMPAIGNS),
        choice("receiver", "Receiver"),
        choice("cca", "Algorithm"),
        choice("size", "Size", "min(f.size_place)"),
        length(one_of("r.experiment", "experiment")),
        Variable("end_ms", "End of the campaign", SELECT_END, hidden=True),
    ]
    panels = [
        number(
            "Transfers",
            "Transfers in the time shown, and how many there are.",
            "string",
            Query(SHOWN),
            width=6,
            text=True,
        ),
        number("Median goodput", "Median over all transfers shown.", "Mbits", Query(MEDIAN_GOODPUT), width=6),
        number(
            "Retransmitted",
            "Share of the packets that are retransmissions.",
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
        algorithm_colours(
            lines(
                "Goodput by algorithm",
                "Mean over the transfers of each interval.",
                "Mbits",
                over_time("avg(goodput_mbps)", "f.cca"),
                joined=True,
            )
        ),
        lines(
            "Completion time by size",
            "Mean over the transfers of each interval, from the first packet to the last ACK; the length of flows that have "
            "no size.",
            "s",
            over_time("avg(completion_s)", in_place("f.size_place", "f.size")),
            joined=True,
        ),
        lines(
            "Retransmitted by receiver",
            "Retransmitted packets over packets sent.",
            "percentunit",
            over_time("sum(retransmitted_packets)::float8 / nullif(sum(packets), 0)", "f.receiver"),
            joined=True,
        ),
        lines(
            "Minimum RTT by receiver",
            "A step in it means that the path has changed.",
            "ms",
            over_time("min(rtt_min_ms)", "f.receiver"),
            joined=True,
        ),
        bars(
            "Goodput by time of day",
            "Mean over each algorithm's transfers that started in each hour: UTC, or in virtual time the campaign's own clock, which "
            "starts at 0 h.",
            "Mbits",
            Query(GOODPUT_BY_HOUR),
            "hour",
            by=("cca", "goodput_mbps"),
        ),
        bars(
            "Completion time by size and algorithm",
            "Median over the transfers; the most frequent 60 pairs.",
            "s",
            Query(COMPLETION_BY_SIZE),
            "size",
            by=("cca", "completion_s"),
        ),
        rows(
            "Paths",
            "Each receiver, size and algorithm.",
            Query(PATHS),
            height=10,
            overrides=PATH_UNITS,
            columns=PATH_WORDS,
        ),
    ]
    return assembled(page, variables, panels)
