# SPDX-License-Identifier: Apache-2.0
"""How fast the store takes rows in and how fast dashboards draw a day of measurements.

    python -m benchmarks.dashboard_speed                    ingestion, then 50 million rows; needs root, ~10 GB of disk
    python -m benchmarks.dashboard_speed --rows 1000000     a quick form; --rows 0 measures ingestion only
    python -m benchmarks.dashboard_speed --keep /var/tmp/b  the database stays there, and is used as it is the next time
    python -m benchmarks.dashboard_speed --report FILE.md   every panel's time, rows read and plan, to FILE.md as well

A real TimescaleDB (store.debian_server) with durable writes, on this machine. The rows of the campaign are made by the
server; ingestion is measured with real records. Every panel of Campaign, Compare and Run is then asked for the whole day.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa

from base.paths import ROOT
from benchmarks import grafana, store_lab
from benchmarks.make_results import START_NS, Case
from dashboards.addresses import TITLES, ZERO_S
from store import debian_server, derive, folder, ingest, packed, tables
from store.connect import connected

FLOWS = 2
DAY_S = 86_400.0


def fill(
    connection: psycopg.Connection[Any],
    experiment: str,
    *,
    runs: int,
    duration_s: float,
    rows_per_s: float,
    start_s: float = START_NS / 1e9,
) -> int:
    """Make runs one after the other, of two flows each; returns the rows.

    rows_per_s: of acks, and as many of sockets, per flow
    """
    width = derive.widths(duration_s)
    total = 0
    for number in range(1, runs + 1):
        with connection.transaction():
            at = start_s + (number - 1) * duration_s
            row = connection.execute(
                """
                INSERT INTO runs (experiment, run, status, error, host, kernel, build, cca, seed, verdict, reasons, label,
                    title, question, params, metrics, spec, environment, started_at, ended_at, duration_s, wall_s,
                    finest_ms, digest)
                VALUES (%s, %s, 'complete', '', 'wan', '', '', %s, %s, 'valid', '', %s,
                    '', '', '{}', '{}', '{}', '{}', to_timestamp(%s), to_timestamp(%s), %s, %s, %s, '')
                RETURNING run_id
                """,
                [
                    experiment,
                    f"{experiment}-{number}",
                    ("reno", "cubic", "medley")[number % 3],
                    number,
                    f"seed {number}",
                    at,
                    at + duration_s,
                    duration_s,
                    duration_s,
                    width[0],
                ],
            ).fetchone()
            assert row is not None
            run_id = row[0]
            connection.execute(
                "INSERT INTO run_params VALUES (%s, 'size', '1MB', 1e6), (%s, 'receiver', 'b', NULL)", [run_id, run_id]
            )
            connection.execute(
                "INSERT INTO run_metrics VALUES (%s, 'goodput_mbps', 'Mbit/s', 10), (%s, 'rtt_mean_ms', 'ms', 50)",
                [run_id, run_id],
            )
            values = {"run": run_id, "at": at, "d": duration_s, "n": int(duration_s * rows_per_s), "f": FLOWS}
            connection.execute(
                """
                INSERT INTO flows (run_id, flow, cca, src, dst, start_s, end_s, packets, retransmitted_packets,
                    goodput_mbps, rtt_min_ms, rtt_mean_ms, completion_s)
                SELECT %(run)s, 'f' || f, 'cubic', 'a', 'b', 0, %(d)s, 1000, 3, 10 + random(), 40, 50, %(d)s
                FROM generate_series(1, %(f)s) f
                """,
                values,
            )
            rows = "generate_series(1, %(f)s) f, generate_series(0, %(n)s - 1) i, LATERAL (SELECT i * %(d)s / %(n)s AS t_s) x"
            for flow in range(1, FLOWS + 1):
                total += sum(
                    ingest.copy_parts(connection, table, ingest.packed_parts(table, run_id, part))
                    for table, part in _per_ack(f"f{flow}", at, duration_s, int(duration_s * rows_per_s))
                )
            for width_ms in width:
                point = {
                    **values,
                    "w": width_ms,
                    "n": max(1, int(duration_s * 1000 / width_ms)),
                    "d": max(duration_s, width_ms / 1000),
                }
                total += connection.execute(
                    f"""
                    INSERT INTO flow_points (run_id, width_ms, time, t_s, flow, throughput_mbps, goodput_mbps,
                        retransmitted_bytes, delivered_bytes, in_flight_bytes, cwnd_packets_min, cwnd_packets,
                        cwnd_packets_max, ssthresh_packets, srtt_ms, srtt_ms_max, rtt_ms_min, rtt_ms, rtt_ms_max)
                    SELECT %(run)s, %(w)s, to_timestamp(%(at)s + t_s), t_s, 'f' || f, 10, 9 + random(),
                        0, 1e6, 1e5, 90, 100, 110, 80, 50, 60, 40, 50, 70
                    FROM {rows}
                    """,
                    point,
                ).rowcount
                total += connection.execute(
                    f"""
                    INSERT INTO queue_points (run_id, width_ms, time, t_s, node, interface, backlog_packets,
                        backlog_packets_max, backlog_bytes_max, drops, marks, sent_mbps)
                    SELECT %(run)s, %(w)s, to_timestamp(%(at)s + t_s), t_s, 'r1', 'r1-eth' || f, 10, 20, 1e4, 0, 0, 20
                    FROM {rows}
                    """,
                    point,
                ).rowcount
    return total


def _per_ack(flow: str, at_s: float, duration_s: float, count: int) -> Iterator[tuple[tables.Table, pa.Table]]:
    """What a flow leaves in acks and sockets, some rows at a time."""
    of = {table.name: table for table in tables.tables()}
    random = np.random.default_rng(count)
    for first in range(0, count, packed.READ_ROWS):
        place = np.arange(first, min(count, first + packed.READ_ROWS))
        t_s = place * duration_s / count
        known = {
            "flow": np.full(place.size, flow, dtype=object), "t_s": t_s,
            "time_ns": round(at_s * 1e9) + np.rint(t_s * 1e9).astype(np.int64),
            "ack": place * 1448, "rtt_us": np.rint(50_000_000 + 10_000_000 * random.random(place.size)) / 1e3,
            "sacked_bytes": np.zeros(place.size, dtype=np.int64), "duplicate": np.zeros(place.size, dtype=np.bool_),
            "cwnd_packets": 100 + place % 50, "ssthresh_packets": np.full(place.size, 80),
            "srtt_us": np.full(place.size, 50_000),
        }  # fmt: skip
        for name in ("acks", "sockets"):
            columns = of[name].columns
            arrays = [
                pa.array(known[column], kind) if column in known else pa.nulls(place.size, kind)
                for column, kind in columns
            ]
            yield of[name], pa.table(arrays, names=[column for column, _ in columns])


def ingestion(database: store_lab.Database, place: Path) -> dict[str, Any]:
    results = store_lab.results(place, 120.0, (Case("reno", 50, 1), Case("cubic", 50, 1), Case("medley", 250, 1)))
    rows, taken_s = 0, 0.0
    with connected("writer", database.url, autocommit=True) as connection:
        for run in folder.find(results):
            records = folder.read(run)
            begun = time.monotonic()
            rows += ingest.ingest(connection, records)[1]
            taken_s += time.monotonic() - begun
    return {"rows": rows, "seconds": round(taken_s, 2), "rows_per_s": round(rows / taken_s)}


@dataclass(frozen=True)
class Drawn:
    """A panel's query over the whole day: seconds until its last row was here, rows that came, rows that were read for it."""

    dashboard: str
    panel: str
    seconds: float
    rows: int
    read: int
    plan: tuple[str, ...]


def drawing(database: store_lab.Database) -> Iterator[Drawn]:
    """Every panel of every dashboard, asked one after the other as Grafana does for the whole day."""
    for name in TITLES:
        content = grafana.board(ROOT / f"dashboards/json/{name}.json")
        run_time = content["time"]["from"].startswith("2000-01-01")
        start_s = ZERO_S if run_time else START_NS / 1e9
        span = grafana.Range(start_s, start_s + DAY_S)
        with connected("reader", database.url) as connection:
            values: dict[str, list[str]] = {}
            for variable in content["templating"]["list"]:
                query = grafana.interpolate(variable["query"], values)
                yield _asked(connection, name, f"variable {variable['name']}", query)
                rows = [str(row[0]) for row in connection.execute(query).fetchall()]
                values[variable["name"]] = (rows if variable["includeAll"] else rows[:1]) or [""]
            for title, target in grafana.queries(content):
                query = grafana.expand(target["rawSql"], values, span)
                yield _asked(connection, name, f"{title} {target['refId']}", query)


def _asked(connection: psycopg.Connection[Any], dashboard: str, panel: str, query: str) -> Drawn:
    start = time.monotonic()
    rows = len(connection.execute(query).fetchall())
    seconds = time.monotonic() - start
    row = connection.execute("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + query).fetchone()
    assert row is not None
    scans = list(_scans(row[0][0]["Plan"]))
    plan = [f"{kind} {relation}: {count} × {rows} rows" for (kind, relation), (count, rows) in _summed(scans).items()]
    return Drawn(dashboard, panel, seconds, rows, sum(rows for _, _, rows in scans), tuple(plan))


def _scans(node: dict[str, Any]) -> Iterator[tuple[str, str, int]]:
    """(node type, table, rows read) of every scan of a plan; chunks of a hypertable count as the table."""
    if "Relation Name" in node:
        kind = node["Node Type"] + (f" ({node['Index Name'].split('_chunk_')[-1]})" if "Index Name" in node else "")
        yield (
            kind,
            re.sub(r"_\d+$", "", node["Alias"]),
            round((node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]),
        )
    for child in node.get("Plans", ()):
        yield from _scans(child)


def _summed(scans: list[tuple[str, str, int]]) -> dict[tuple[str, str], tuple[int, int]]:
    sums: dict[tuple[str, str], tuple[int, int]] = {}
    for kind, relation, rows in scans:
        count, total = sums.get((kind, relation), (0, 0))
        sums[kind, relation] = (count + 1, total + rows)
    return sums


def _of_dashboards(drawn: list[Drawn]) -> dict[str, float]:
    """Seconds of all of a dashboard's queries, one after the other."""
    return {name: round(sum(one.seconds for one in drawn if one.dashboard == name), 2) for name in TITLES}


def page(drawn: list[Drawn], rows: int) -> str:
    """The evidence as a page."""
    lines = [
        "<!-- SPDX-License-Identifier: Apache-2.0 -->",
        "# Query times of the dashboards over a day of measurements",
        "",
        f"Written by `python -m benchmarks.dashboard_speed --report`: one day of measurements, {rows:,} rows in the tables of records "
        f"and points. The slowest query takes {max(one.seconds for one in drawn):.2f} s. The column *read* counts the rows that the "
        "scans of the plan returned or discarded (`EXPLAIN ANALYZE`).",
        "",
        "All queries of each dashboard, one after the other: "
        + ", ".join(f"{name} {seconds:.2f} s" for name, seconds in _of_dashboards(drawn).items())
        + ".",
        "",
        "| dashboard | panel | ms | rows | read | scans |",
        "|---|---|---:|---:|---:|---|",
    ]
    lines += [
        f"| {one.dashboard} | {one.panel} | {one.seconds * 1000:.0f} | {one.rows} | {one.read} | {'; '.join(one.plan) or '–'} |"
        for one in drawn
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000_000)
    parser.add_argument("--runs", type=int, default=144, help="a measurement every ten minutes for a day")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="a folder with a short path, for the database")
    parser.add_argument("--report", type=Path, metavar="FILE.md")
    options = parser.parse_args()
    with ExitStack() as stack:
        place = options.keep or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="warpbed-bench-", dir="/var/tmp"))
        )
        settings = {"shared_buffers": "1GB", "max_wal_size": "8GB", "work_mem": "64MB"}
        is_filled = (place / "pg/filled").exists()
        server = stack.enter_context(debian_server.running(place / "pg", **settings))
        database = store_lab.make(server, "bench")
        if not is_filled:
            measured = ingestion(database, place / "results")
            print(json.dumps({"ingestion": measured}), flush=True)
            if not options.rows:
                return
            per_s = options.rows / (DAY_S * FLOWS * 2)
            with connected("writer", database.url, autocommit=True) as connection:
                rows = fill(connection, "day", runs=options.runs, duration_s=DAY_S / options.runs, rows_per_s=per_s)
            with store_lab.admin(server, "bench") as admin:
                admin.execute("VACUUM ANALYZE")
                admin.execute("CHECKPOINT")
            (place / "pg/filled").write_text(str(rows))
        rows = int((place / "pg/filled").read_text())
        print(json.dumps({"rows": rows, "tables": len(list(tables.tables()))}), flush=True)
        drawn = []
        for one in drawing(database):
            drawn.append(one)
            print(json.dumps(asdict(one), ensure_ascii=False), flush=True)
        print(json.dumps({"slowest_s": max(one.seconds for one in drawn), "dashboards_s": _of_dashboards(drawn)}))
        if options.report:
            options.report.write_text(page(drawn, rows))


if __name__ == "__main__":
    main()
