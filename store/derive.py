# SPDX-License-Identifier: Apache-2.0
"""Tables that the store derives from the records: points of fixed widths to draw, and events to annotate. SQL for DuckDB, so that the
database and the Parquet backend hold the same numbers.

Every statement reads views named like the records (columns as in collectors.records.SCHEMAS plus run_id) and `widths`
(run_id, width_ms).
"""

from __future__ import annotations

WIDTHS_MS = (10, 100, 1_000, 10_000, 60_000, 600_000)
MOST_POINTS = 20_000
"""A width finer than this many points per flow is not made, except the coarsest."""
MOST_EVENTS = 500
"""Events of one kind and flow; more would hide the curve they annotate. The last one kept says how many follow."""
START_NS = "round(time_ns - t_s * 1e9)::BIGINT"


def widths(duration_s: float) -> tuple[int, ...]:
    """Widths (ms) of the points of a run: neighbours differ by a factor of at most ten."""
    return tuple(width for width in WIDTHS_MS if duration_s * 1e3 / width <= MOST_POINTS) or WIDTHS_MS[-1:]


# The values of points, all of them floating point: column → aggregate over a bucket. store.tables makes the columns of these.
WIRE_VALUES = {
    "throughput_mbps": "sum(r.wire_bytes) * 8e-6 / sum(r.width_s)",
    "goodput_mbps": "sum(r.delivered_bytes) * 8e-6 / sum(r.width_s)",
    "retransmitted_bytes": "sum(r.retransmitted_bytes)::DOUBLE",
    "delivered_bytes": "sum(r.delivered_bytes)::DOUBLE",
    "in_flight_bytes": "max(r.in_flight_bytes)::DOUBLE",
}
WINDOW_VALUES = {
    "cwnd_packets_min": "min(r.cwnd_packets)::DOUBLE",
    "cwnd_packets": "avg(r.cwnd_packets)",
    "cwnd_packets_max": "max(r.cwnd_packets)::DOUBLE",
    "ssthresh_packets": "avg(r.ssthresh_packets)",
    "srtt_ms": "avg(r.srtt_ms)",
    "srtt_ms_max": "max(r.srtt_ms)",
}
DELAY_VALUES = {
    "rtt_ms_min": "min(r.rtt_us) / 1e3",
    "rtt_ms": "avg(r.rtt_us) / 1e3",
    "rtt_ms_max": "max(r.rtt_us) / 1e3",
}
FLOW_VALUES = {**WIRE_VALUES, **WINDOW_VALUES, **DELAY_VALUES}
# Over a bucket's aggregates and those of the bucket before: the kernel's counters only grow. What they show at the first sample,
# at the run's start, was counted before it (the calibration fills each buffer).
QUEUE_VALUES = {
    "backlog_packets": "mean_packets",
    "backlog_packets_max": "most_packets",
    "backlog_bytes_max": "most_bytes",
    "drops": "(dropped - coalesce(lag(dropped) OVER queue, dropped_first))::DOUBLE",
    "marks": "(marked - coalesce(lag(marked) OVER queue, marked_first))::DOUBLE",
    "sent_mbps": "(sent - lag(sent) OVER queue) * 8e-6 / nullif(last_s - lag(last_s) OVER queue, 0)",
}

_BUCKET = "floor(r.t_s * 1e3 / w.width_ms)::BIGINT AS bucket"
_GROUP = "GROUP BY ALL"


def _selected(values: dict[str, str]) -> str:
    return ",\n        ".join(f"{expression} AS {name}" for name, expression in values.items())


FLOW_POINTS = f"""
WITH starts AS (
    SELECT run_id, min(start_ns) AS start_ns FROM (
        SELECT run_id, {START_NS} AS start_ns FROM intervals UNION ALL
        SELECT run_id, {START_NS} FROM sockets UNION ALL
        SELECT run_id, {START_NS} FROM tcp_info UNION ALL
        SELECT run_id, {START_NS} FROM acks) GROUP BY run_id
), wire AS (
    SELECT r.run_id, w.width_ms, r.flow, {_BUCKET},
        {_selected(WIRE_VALUES)}
    FROM intervals r JOIN widths w USING (run_id) {_GROUP}
), state AS (
    SELECT run_id, t_s, flow, cwnd_packets, ssthresh_packets, srtt_us / 1e3 AS srtt_ms FROM sockets
    UNION ALL -- hosts without the tracepoint: the sampled sockets
    SELECT run_id, t_s, flow, cwnd_packets, ssthresh_packets, rtt_us / 1e3 FROM tcp_info
    WHERE (run_id, flow) NOT IN (SELECT DISTINCT (run_id, flow) FROM sockets)
), window_ AS (
    SELECT r.run_id, w.width_ms, r.flow, {_BUCKET},
        {_selected(WINDOW_VALUES)}
    FROM state r JOIN widths w USING (run_id) {_GROUP}
), delay AS (
    SELECT r.run_id, w.width_ms, r.flow, {_BUCKET},
        {_selected(DELAY_VALUES)}
    FROM acks r JOIN widths w USING (run_id) WHERE rtt_us IS NOT NULL {_GROUP}
)
SELECT run_id, width_ms, start_ns + bucket * width_ms * 1000000 AS time_ns, bucket * width_ms / 1e3 AS t_s, flow,
    {", ".join(FLOW_VALUES)}
FROM wire FULL JOIN window_ USING (run_id, width_ms, flow, bucket) FULL JOIN delay USING (run_id, width_ms, flow, bucket)
JOIN starts USING (run_id)
ORDER BY run_id, width_ms, flow, t_s
"""

QUEUE_POINTS = f"""
WITH starts AS (SELECT run_id, min({START_NS}) AS start_ns FROM queues GROUP BY run_id),
buckets AS (
    SELECT r.run_id, w.width_ms, r.node, r.interface, {_BUCKET},
        avg(backlog_packets) AS mean_packets, max(backlog_packets)::DOUBLE AS most_packets,
        max(backlog_bytes)::DOUBLE AS most_bytes,
        max(drops) AS dropped, max(marks) AS marked, min(drops) AS dropped_first, min(marks) AS marked_first,
        max(sent_bytes) AS sent, max(r.t_s) AS last_s
    FROM queues r JOIN widths w USING (run_id) {_GROUP}
)
SELECT run_id, width_ms, start_ns + bucket * width_ms * 1000000 AS time_ns, bucket * width_ms / 1e3 AS t_s, node, interface,
        {_selected(QUEUE_VALUES)}
FROM buckets JOIN starts USING (run_id)
WINDOW queue AS (PARTITION BY run_id, width_ms, node, interface ORDER BY bucket)
ORDER BY run_id, width_ms, node, interface, bucket
"""

# What a module reports as its own phase (tcp_info's ca_phase; get_info() of kernels/modules/tcp_*.c): algorithm → texts by number.
OWN_PHASES = {
    "medley": {0: "R false: the last loss was a random one", 1: "R true: the last loss was one of congestion"},
    "ftat": {0: "start", 1: "adaptive transmission", 2: "additive increase"},
}
_PHASES = ", ".join(
    f"('{name}', {number}, '{text}')" for name, texts in OWN_PHASES.items() for number, text in texts.items()
)

# What the kernel's own states say. ssthresh moves at each congestion event, whatever the algorithm; TCP_CA_Recovery and
# TCP_CA_Loss (include/uapi/linux/tcp.h) tell fast recovery from a timeout where a sample of the socket fell into it.
EVENTS = f"""
WITH steps AS (
    SELECT run_id, time_ns, t_s, flow, cwnd_packets AS cwnd, ssthresh_packets AS ssthresh,
        lag(cwnd_packets) OVER flow AS cwnd_before, lag(ssthresh_packets) OVER flow AS ssthresh_before,
        row_number() OVER flow AS number
    FROM sockets WINDOW flow AS (PARTITION BY run_id, flow ORDER BY time_ns)
), phases AS (
    SELECT *, CASE WHEN ssthresh IS NULL OR cwnd < ssthresh THEN 'slow start' ELSE 'congestion avoidance' END AS phase FROM steps
), turns AS (
    SELECT *, lag(phase) OVER (PARTITION BY run_id, flow ORDER BY time_ns) AS phase_before FROM phases
), states AS (
    SELECT run_id, time_ns, t_s, flow, ca, ca_state, ca_phase, lag(ca_state) OVER flow AS before, lag(ca_phase) OVER flow AS phase_before
    FROM tcp_info WINDOW flow AS (PARTITION BY run_id, flow ORDER BY time_ns)
), own(ca, ca_phase, text) AS (VALUES {_PHASES}),
reporting AS (SELECT DISTINCT run_id, flow FROM states JOIN own USING (ca, ca_phase)), -- slow start is no phase of theirs
found AS (
    SELECT run_id, time_ns, t_s, flow, 'phase' AS kind, phase AS text FROM turns
    WHERE (phase_before IS NULL OR phase_before <> phase) AND (run_id, flow) NOT IN (SELECT (run_id, flow) FROM reporting)
    UNION ALL
    SELECT run_id, time_ns, t_s, flow, 'phase', ca || ': ' || text FROM states JOIN own USING (ca, ca_phase)
    WHERE phase_before IS DISTINCT FROM ca_phase
    UNION ALL
    SELECT run_id, time_ns, t_s, flow, 'loss', 'window cut: cwnd ' || cwnd_before || ' → ' || cwnd || ', ssthresh ' || ssthresh
    FROM steps
    WHERE number > 1 AND ssthresh IS NOT NULL AND ssthresh IS DISTINCT FROM ssthresh_before
        AND (ssthresh < cwnd_before OR ssthresh_before IS NOT NULL)
        AND cwnd <= cwnd_before -- not HyStart, which ends slow start with ssthresh = cwnd
    UNION ALL
    SELECT run_id, time_ns, t_s, flow, 'recovery', 'fast recovery' FROM states WHERE ca_state = 3 AND before IS DISTINCT FROM 3
    UNION ALL
    SELECT run_id, time_ns, t_s, flow, 'timeout', 'retransmission timeout' FROM states
    WHERE ca_state = 4 AND before IS DISTINCT FROM 4
    UNION ALL
    SELECT run_id, time_ns, t_s, flow, kind, text FROM planned_events
), counted AS (
    SELECT *, row_number() OVER kind AS place, count(*) OVER (PARTITION BY run_id, flow, kind) AS total FROM found
    WINDOW kind AS (PARTITION BY run_id, flow, kind ORDER BY time_ns, text)
)
SELECT run_id, time_ns, t_s, flow, kind,
    CASE WHEN place = {MOST_EVENTS} AND total > place THEN text || ' (' || (total - place) || ' more not shown)' ELSE text END AS text
FROM counted WHERE place <= {MOST_EVENTS}
ORDER BY run_id, time_ns, kind, flow, text
"""

DERIVED = {"flow_points": FLOW_POINTS, "queue_points": QUEUE_POINTS, "events": EVENTS}
