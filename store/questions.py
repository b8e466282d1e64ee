# SPDX-License-Identifier: Apache-2.0
"""Named questions to the store, each one text of SQL that PostgreSQL and DuckDB both run over the same tables.

Parameters are written $name and have a default; `ask` binds them, they are never put into the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import psycopg

from store.errors import StoreUsageError


@dataclass(frozen=True)
class Question:
    """`parameters`: name → default; its type is the parameter's."""

    name: str
    text: str
    sql: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


COUNTED = "status = 'complete' AND verdict <> 'invalid'"
ONE_RUN = "run_id IN (SELECT run_id FROM runs WHERE experiment = $experiment AND run = $run)"

QUESTIONS = {question.name: question for question in (
    Question("runs", "every run with its verdict",
        "SELECT experiment, run, status, verdict, host, kernel, cca, seed, label, duration_s FROM runs "
        "WHERE ($experiment = '' OR experiment = $experiment) ORDER BY experiment, run", {"experiment": ""}),
    Question("rows", "how many rows of each record a run has",
        "SELECT 'intervals' AS record, count(*) AS row_count FROM intervals WHERE {one} UNION ALL "
        "SELECT 'sockets', count(*) FROM sockets WHERE {one} UNION ALL SELECT 'acks', count(*) FROM acks WHERE {one} UNION ALL "
        "SELECT 'queues', count(*) FROM queues WHERE {one} UNION ALL SELECT 'tcp_info', count(*) FROM tcp_info WHERE {one} "
        "ORDER BY record", {"experiment": "", "run": ""}),
    Question("flows", "the flows of an experiment's counted runs",
        "SELECT run, flow, f.cca, src, dst, start_s, end_s, packets, retransmitted_packets, delivered_bytes, "
        "throughput_mbps, goodput_mbps, rtt_min_ms, rtt_mean_ms, rtt_p95_ms, completion_s FROM flows f JOIN runs USING (run_id) "
        f"WHERE experiment = $experiment AND {COUNTED} ORDER BY run, flow", {"experiment": ""}),
    Question("series", "a run's flows over time, in points of a width",
        "SELECT flow, t_s, throughput_mbps, goodput_mbps, cwnd_packets, ssthresh_packets, srtt_ms, rtt_ms, in_flight_bytes, "
        "retransmitted_bytes FROM flow_points WHERE {one} AND width_ms = $width_ms ORDER BY flow, t_s",
        {"experiment": "", "run": "", "width_ms": 1000}),
    Question("queue", "a run's queues over time, in points of a width",
        "SELECT node, interface, t_s, backlog_packets, backlog_packets_max, drops, sent_mbps FROM queue_points "
        "WHERE {one} AND width_ms = $width_ms ORDER BY node, interface, t_s",
        {"experiment": "", "run": "", "width_ms": 1000}),
    Question("events", "losses, timeouts and phases of a run",
        "SELECT t_s, flow, kind, text FROM events WHERE {one} ORDER BY t_s, kind, flow, text", {"experiment": "", "run": ""}),
    Question("rtt", "distribution of a run's RTT samples",
        "SELECT flow, count(rtt_us) AS samples, min(rtt_us) / 1e3 AS min_ms, "
        "percentile_cont(0.5) WITHIN GROUP (ORDER BY rtt_us) / 1e3 AS p50_ms, "
        "percentile_cont(0.95) WITHIN GROUP (ORDER BY rtt_us) / 1e3 AS p95_ms, "
        "percentile_cont(0.99) WITHIN GROUP (ORDER BY rtt_us) / 1e3 AS p99_ms, max(rtt_us) / 1e3 AS max_ms "
        "FROM acks WHERE {one} AND rtt_us IS NOT NULL GROUP BY flow ORDER BY flow", {"experiment": "", "run": ""}),
    Question("jain", "Jain's index of a run's goodputs in windows of a width (Kato 2012 eq 5.2)",
        "SELECT t_s, sum(goodput_mbps) * sum(goodput_mbps) / nullif(count(*) * sum(goodput_mbps * goodput_mbps), 0) AS jain_index "
        "FROM flow_points WHERE {one} AND width_ms = $width_ms AND goodput_mbps IS NOT NULL GROUP BY t_s ORDER BY t_s",
        {"experiment": "", "run": "", "width_ms": 1000}),
    Question("sweep", "a metric's mean and standard deviation per value of a parameter and algorithm, over counted runs",
        "SELECT r.cca, p.value AS parameter, avg(m.value) AS mean, stddev_samp(m.value) AS deviation, count(*) AS runs "
        "FROM runs r JOIN run_params p ON p.run_id = r.run_id AND p.name = $parameter "
        "JOIN run_metrics m ON m.run_id = r.run_id AND m.name = $metric "
        f"WHERE experiment = $experiment AND {COUNTED} GROUP BY r.cca, p.value, p.number ORDER BY r.cca, p.number, p.value",
        {"experiment": "", "metric": "utilization", "parameter": "buffer"}),
    Question("reasons", "why runs are suspect or invalid",
        "SELECT experiment, run, verdict, rule, severity, message FROM run_reasons JOIN runs USING (run_id) "
        "WHERE ($experiment = '' OR experiment = $experiment) ORDER BY experiment, run, number", {"experiment": ""}),
)}  # fmt: skip


def find(name: str) -> Question:
    if name not in QUESTIONS:
        raise StoreUsageError(f"no question {name!r}; there are {', '.join(QUESTIONS)}")
    return QUESTIONS[name]


def bound(question: Question, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The question's parameters with those given, converted to their types."""
    values = dict(question.parameters)
    for name, value in arguments.items():
        if name not in values:
            known = ", ".join(values) or "none"
            raise StoreUsageError(f"question {question.name} has no parameter {name!r}; it has {known}")
        try:
            values[name] = type(values[name])(value)
        except ValueError as error:
            raise StoreUsageError(f"parameter {name} of {question.name}: {value!r} is not a whole number") from error
    return values


def text(question: Question) -> str:
    return question.sql.replace("{one}", ONE_RUN)


def ask_database(connection: psycopg.Connection[Any], question: Question, values: Mapping[str, Any]) -> Answer:
    kinds = {name: "bigint" if isinstance(value, int) else "text" for name, value in question.parameters.items()}
    query = re.sub(r"\$(\w+)", lambda match: f"%({match[1]})s::{kinds[match[1]]}", text(question).replace("%", "%%"))
    cursor = connection.execute(query, dict(values))
    assert cursor.description is not None
    return Answer(tuple(column.name for column in cursor.description), tuple(cursor.fetchall()))


def ask_files(database: Any, question: Question, values: Mapping[str, Any]) -> Answer:
    """`database`: from store.files.opened."""
    query = text(question)
    used = {name: value for name, value in values.items() if f"${name}" in query}
    cursor = database.execute(query, used)
    return Answer(tuple(column[0] for column in cursor.description), tuple(cursor.fetchall()))
