# SPDX-License-Identifier: Apache-2.0
"""Run: everything of one run on one time axis, per flow."""

from __future__ import annotations

from typing import Any

from grafana_foundation_sdk.models import dashboard as models

from analysis.metrics import REGISTRY
from dashboards.addresses import ZERO_S
from dashboards.experiments import run_link, verdict_colours
from dashboards.looks import MORE, dashed_peaks, dotted, flow_looks, in_place, natural
from dashboards.parts import (
    FIRST_METRICS,
    MINUTE,
    RUN_ORDER,
    SECONDS,
    WHOLE,
    Marks,
    Query,
    assembled,
    board,
    bucketed,
    lines,
    one_of,
    rows,
)
from dashboards.variables import SELECT_COMPLETE, Variable, length

RUN = f"{one_of('r.experiment', 'experiment')} AND {one_of('r.run', 'run')}"
FLOW = f"{RUN} AND {one_of('p.flow', 'flow')}"
DROPS = "Drops and marks"
KINDS = {
    "loss": ("Losses", "red"),
    "timeout": ("Timeouts", "purple"),
    "recovery": ("Recovery", "orange"),
    "phase": ("Phases", "blue"),
    "link": ("Link changes", "green"),
    "flow": ("Flows start", "text"),
}
"""Of events: title and colour."""

SELECT_RUNS = f"""
    SELECT run FROM runs r WHERE {one_of("r.experiment", "experiment")} AND status = 'complete' ORDER BY {RUN_ORDER}
"""
FLOW_NAME = natural("p.flow")
# Where a run has no row of a flow (its capture has no data of it), the points have its name alone.
PLACE = f'row_number() OVER (PARTITION BY f.run_id, f.cca ORDER BY {natural("f.flow")} COLLATE "C")'
NAMED_POINTS = f"""(SELECT q.*, coalesce(n.name, q.flow) AS name FROM flow_points q LEFT JOIN
        (SELECT f.run_id, f.flow, concat_ws('{MORE}', nullif(f.cca, ''), {in_place(PLACE, "f.flow")}) AS name
        FROM flows f JOIN runs r USING (run_id) WHERE {RUN}) n USING (run_id, flow))"""
"""Points with what their flow is called: its algorithm, and itself in its place among that algorithm's flows (looks.flow_looks)."""
SELECT_FLOWS = (
    f'SELECT f.flow FROM flows f JOIN runs r USING (run_id) WHERE {RUN} ORDER BY {natural("f.flow")} COLLATE "C"'
)
ABOUT = f"""
    SELECT verdict, cca, (SELECT string_agg(v.name || ' ' || v.value, ', ' ORDER BY v.name)
            FROM run_params v WHERE v.run_id = r.run_id AND v.name <> 'cca') AS parameters,
        seed::text AS seed, duration_s,
        CASE WHEN $__unixEpochFrom() - {ZERO_S} > 0.5 OR $__unixEpochTo() - {ZERO_S} < duration_s - 0.5
            THEN round(greatest(0, least(duration_s, $__unixEpochTo() - {ZERO_S})
                - greatest(0, $__unixEpochFrom() - {ZERO_S}))::numeric)::text || ' s of it' ELSE 'all of it' END AS shown,
        host, kernel, title, made_at, experiment, run, ({ZERO_S} + duration_s) * 1000 AS to_ms
    FROM runs r WHERE {RUN}
"""
WHY = f"""
    SELECT message, rule, severity FROM run_reasons JOIN runs r USING (run_id) WHERE {RUN}
    UNION ALL SELECT 'nothing was found', 'verdict', 'ok' FROM runs r WHERE {RUN} AND reasons = ''
    LIMIT 100
"""
FLOWS = f"""
    SELECT p.flow, p.cca, src, dst, goodput_mbps, throughput_mbps, rtt_min_ms, rtt_mean_ms, rtt_p95_ms, completion_s, start_s, end_s,
        packets, retransmitted_packets, fast_retransmissions, timeout_retransmissions, spurious_retransmissions
    FROM flows p JOIN runs r USING (run_id) WHERE {FLOW} ORDER BY {FLOW_NAME} COLLATE "C"
"""
ABOUT_WORDS = {
    "verdict": ("Verdict", 70), "cca": ("Algorithm", 95), "parameters": ("Parameters", 330), "seed": ("Seed", 80),
    "duration_s": ("Length", 80), "shown": ("Shown", 85),
    "host": ("Host", 70), "kernel": ("Kernel", 75), "title": ("Title", 0), "made_at": ("Made", 145),
}  # fmt: skip
WHY_WORDS = {"message": ("What was found", 0), "rule": ("Rule", 180), "severity": ("Severity", 110)}
FLOW_WORDS = {
    "flow": ("Flow", 60), "cca": ("Algorithm", 90), "src": ("From", 55), "dst": ("To", 55),
    "goodput_mbps": ("Goodput", 100),
    "throughput_mbps": ("Throughput", 105), "rtt_min_ms": ("Min RTT", 80),
    "rtt_mean_ms": ("Mean RTT", 85), "rtt_p95_ms": ("RTT p95", 80), "completion_s": ("Completion", 95),
    "start_s": ("Start", 75),
    "end_s": ("End", 80), "packets": ("Packets", 80), "retransmitted_packets": ("Retransmitted", 115),
    "fast_retransmissions": ("Fast", 60),
    "timeout_retransmissions": ("Timeout", 80), "spurious_retransmissions": ("Spurious", 80),
}  # fmt: skip
METRIC_WORDS = {
    "what": ("Metric", 420), "part": ("Of", 220), "value": ("Value", 140), "unit": ("Unit", 140),
    "name": ("Name in files", 0),
}  # fmt: skip
FLOW_UNITS = {
    "start_s": SECONDS,
    "end_s": SECONDS,
    "completion_s": SECONDS,
    "throughput_mbps": "Mbits",
    "goodput_mbps": "Mbits",
    "rtt_min_ms": "ms",
    "rtt_mean_ms": "ms",
    "rtt_p95_ms": "ms",
}
METRICS = f"""
    SELECT split_part(m.name, '.', 1) AS what, nullif(substr(m.name, length(split_part(m.name, '.', 1)) + 2), '') AS part,
        m.value, nullif(m.unit, '1') AS unit, m.name FROM run_metrics m JOIN runs r USING (run_id) WHERE {RUN}
    ORDER BY {FIRST_METRICS}, m.name
"""
# The bottleneck's queue says so, and comes first by its name.
QUEUE = f"""CASE WHEN p.node = r.environment #>> '{{bottleneck,node}}' AND p.interface = r.environment #>> '{{bottleneck,interface}}'
    THEN 'bottleneck ' || p.interface ELSE {natural("p.interface")} END"""
FULLEST = f"""(p.node, p.interface) IN (SELECT q.node, q.interface FROM queue_points q JOIN runs r USING (run_id)
    WHERE {RUN} AND q.width_ms = width_ms(r.finest_ms, r.duration_s * 1000 / 60) GROUP BY q.node, q.interface, r.run_id, r.environment
    ORDER BY (q.node = r.environment #>> '{{bottleneck,node}}' AND q.interface = r.environment #>> '{{bottleneck,interface}}') IS TRUE DESC,
        sum(q.backlog_packets) DESC, q.node, q.interface LIMIT 5)"""
"""The bottleneck's queue and the four that hold most, of what may be dozens."""
MOST_MARKS = 50
"""Of one kind in the time shown; more would hide the curves."""


def flow_series(value: str, suffix: str = "", ref: str = "A") -> Query:
    metric = f"p.name || ' {suffix}'" if suffix else "p.name"
    return Query(bucketed(value, FLOW, metric=metric, alike=NAMED_POINTS), ref, series=True)


def queue_series(value: str, suffix: str, ref: str) -> Query:
    metric = f"{QUEUE} || ' {suffix}'"
    return Query(bucketed(value, f"{RUN} AND {FULLEST}", metric=metric, alike="queue_points"), ref, series=True)


def counted_series(column: str, ref: str) -> Query:
    """Of the queues that dropped (or marked) something in the time shown; where none did, a line at 0 says so for all of them."""
    counted = bucketed(f"nullif(sum({column}), 0)", RUN, metric=f"{QUEUE} || ' {column}'", alike="queue_points")
    none = bucketed(f"sum({column})", RUN, metric=f"'no {column}'", alike="queue_points")
    return Query(
        f"""
        WITH counted AS ({counted}), nothing AS ({none})
        SELECT * FROM counted UNION ALL SELECT * FROM nothing WHERE NOT EXISTS (SELECT FROM counted) ORDER BY 1, 2""",
        ref,
        series=True,
    )


def events(kind: str) -> str:
    return f"""
        SELECT time, CASE WHEN total > {MOST_MARKS} THEN total || ' marks of this kind from here on: zoom in' ELSE text END AS text, tags
        FROM (SELECT elapsed(e.t_s) AS time, concat_ws(': ', nullif(e.flow, ''), e.text) AS text, e.kind AS tags,
            count(*) OVER () AS total, row_number() OVER (ORDER BY e.t_s) AS place
        FROM events e JOIN runs r USING (run_id)
        WHERE {RUN} AND e.kind = '{kind}' AND (e.flow = '' OR {one_of("e.flow", "flow")})
        AND e.t_s BETWEEN $__unixEpochFrom() - {ZERO_S} AND $__unixEpochTo() - {ZERO_S}) shown
        WHERE total <= {MOST_MARKS} OR place = 1 ORDER BY 1
    """


def dashboard() -> Any:
    page = board(
        "run",
        "One run: throughput, window, RTT, queue and losses of its flows since its start, with its verdict.",
        elapsed_s=60,
    )
    variables = [
        Variable("experiment", "Experiment", SELECT_COMPLETE),
        Variable("run", "Run", SELECT_RUNS),
        Variable("flow", "Flow", SELECT_FLOWS, multi=True),
        length(RUN),
    ]
    marks = [
        Marks(title, colour, events(kind), enable=kind in ("loss", "timeout", "link"), but_in=("Retransmitted", DROPS))
        for kind, (title, colour) in KINDS.items()
    ]
    return assembled(page, variables, [*_summary(), *_flows(), *_queues(), *_tables()], marks)


def _summary() -> list[Any]:
    hidden: list[tuple[str, Any]] = [("custom.hidden", True)]
    about = {**verdict_colours(), "duration_s": [("unit", "s")], "seed": WHOLE, "made_at": MINUTE,
             "shown": [run_link("Show the whole run")],
             "title": [("custom.inspect", True)], "experiment": hidden, "run": hidden, "to_ms": hidden}  # fmt: skip
    return [
        rows(
            "Run",
            "The run and its verdict. Shown: how much of it the charts cover; a click shows all.",
            Query(ABOUT),
            height=4,
            overrides=about,
            columns=ABOUT_WORDS,
        ),
        rows(
            "Why",
            "Reasons for the verdict.",
            Query(WHY),
            height=4,
            columns=WHY_WORDS,
            overrides={"message": [("custom.inspect", True)]},
        ),
    ]


def _flow_lines(title: str, description: str, unit: str, *queries: Query, **more: Any) -> Any:
    said = f"{description} Colour: the algorithm; its flows by shade, then by dashes."
    return flow_looks(lines(title, said, unit, *queries, **more))


def _flows() -> list[Any]:
    return [
        _flow_lines(
            "Throughput", "Wire bytes that left the sender, per interval.", "Mbits", flow_series("avg(throughput_mbps)")
        ),
        _flow_lines(
            "Goodput",
            "Bytes that reached the receiver for the first time, per interval.",
            "Mbits",
            flow_series("avg(goodput_mbps)"),
        ),
        dashed_peaks(
            dotted(
                _flow_lines(
                    "Congestion window and slow-start threshold",
                    "cwnd and ssthresh (dotted) at each ACK, from tcp_probe (sampled sockets where a host has no tracepoint). "
                    "ssthresh is absent while infinite.",
                    "none",
                    flow_series("avg(cwnd_packets)", "cwnd"),
                    flow_series("max(cwnd_packets_max)", "cwnd max", "B"),
                    flow_series("avg(ssthresh_packets)", "ssthresh", "C"),
                    label="packets",
                ),
                "ssthresh",
            )
        ),
        dashed_peaks(
            dotted(
                _flow_lines(
                    "Round-trip time",
                    "Mean and maximum of the samples from the capture (wire), and the socket's srtt (dotted). Karn's rule discards "
                    "samples of retransmitted data, so the wire has gaps where nearly every ACK covers a retransmission.",
                    "ms",
                    flow_series("avg(srtt_ms)", "srtt"),
                    flow_series("avg(rtt_ms)", "wire", "B"),
                    flow_series("max(rtt_ms_max)", "wire max", "C"),
                ),
                "srtt",
            )
        ),
        _flow_lines(
            "In flight",
            "Bytes sent but not yet acknowledged cumulatively.",
            "bytes",
            flow_series("max(in_flight_bytes)"),
        ),
        _flow_lines(
            "Retransmitted",
            "Retransmitted bytes, for any reason.",
            "bytes",
            flow_series("sum(retransmitted_bytes)"),
            bars=True,
        ),
    ]


def _peaks_of_others_unnamed(panel: Any) -> Any:
    """All of them look alike, so the legend has that of the bottleneck only; the tooltip has each."""
    unnamed = models.DynamicConfigValue(
        id_val="custom.hideFrom", value={"legend": True, "tooltip": False, "viz": False}
    )
    return dashed_peaks(panel).override_by_regexp("/^(?!bottleneck ).* max$/", [unnamed])


def _queues() -> list[Any]:
    return [
        _peaks_of_others_unnamed(
            lines(
                "Queue",
                "Packets in the routers' queues: mean and maximum (faint dashes) of each interval, for the bottleneck and the four fullest "
                "other queues.",
                "none",
                queue_series("avg(backlog_packets)", "mean", "A"),
                queue_series("max(backlog_packets_max)", "max", "B"),
                label="packets",
            )
        ),
        lines(
            DROPS,
            "Packets dropped or marked by the routers' queues, per interval. Queues without either in the time shown are left out.",
            "none",
            counted_series("drops", "A"),
            counted_series("marks", "B"),
            label="packets",
            bars=True,
        ),
    ]


def _tables() -> list[Any]:
    labels = {name: {"text": one.label, "index": place} for place, (name, one) in enumerate(REGISTRY.items())}
    units: dict[str, list[tuple[str, Any]]] = {name: [("unit", unit)] for name, unit in FLOW_UNITS.items()}
    return [
        rows(
            "Flows",
            "Totals of each data connection.",
            Query(FLOWS),
            height=6,
            overrides=units,
            columns=FLOW_WORDS,
            missing="no flow: the run has no captures, or there is no run yet",
        ),
        rows(
            "Metrics",
            "The run's metrics, as `./warpbed metrics` prints them.",
            Query(METRICS),
            height=10,
            overrides={"what": [("mappings", [{"type": "value", "options": labels}])]},
            columns=METRIC_WORDS,
        ),
    ]
