# SPDX-License-Identifier: Apache-2.0
"""Rows per packet are kept as arrays: every one comes back, they take a fifth of the room, and older databases are brought over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from base.paths import ROOT
from benchmarks import store_lab
from benchmarks.make_results import Case
from benchmarks.store_lab import contents, load
from collectors import reading, records
from hosts.virtual.launch import GuestKernel
from store import debian_server, folder, ingest, migrate, packed, tables
from store.connect import connected
from store.errors import StoreUsageError
from tests import kept_results

pytestmark = pytest.mark.root
TABLES = {table.name: table for table in tables.tables()}
START = 1_767_225_600_000_000_123
RUN_ID = 7


@pytest.fixture(scope="module")
def server(timescale: debian_server.Server) -> store_lab.Database:
    database = store_lab.make(timescale, "packed")
    database.rows(
        "INSERT INTO runs (experiment, run, status, error, host, kernel, build, cca, verdict, reasons, label, title, question, params,"
        " metrics, spec, environment, started_at, ended_at, duration_s, finest_ms, digest) SELECT 'e', 'r', '', '', '', '', '', '', '', '',"
        " '', '', '', '{}', '{}', '{}', '{}', now(), now(), 1, 10, ''",
        "writer",
    )
    return database


def table_of(kind: str, rows: list[dict[str, Any]]) -> pa.Table:
    columns = records.SCHEMAS[kind]
    return pa.table(
        [pa.array([row.get(name) for row in rows], of) for name, of in columns], names=[name for name, _ in columns]
    )


def through(database: store_lab.Database, kind: str, rows: pa.Table) -> tuple[list[Any], int]:
    """What the view gives back in its order within a key, and how many parts it was."""
    columns = ", ".join(
        "(extract(epoch FROM time) * 1000000)::bigint" if name == "time_ns" else f'"{name}"'
        for name, _ in records.SCHEMAS[kind]
    )
    with connected("writer", database.url, autocommit=True) as connection:
        connection.execute(f"DELETE FROM {kind}_packed")
        parts = list(ingest.packed_parts(TABLES[kind], RUN_ID, rows))
        assert ingest.copy_parts(connection, TABLES[kind], parts) == rows.num_rows
        return connection.execute(f"SELECT {columns} FROM {kind} WHERE run_id = {RUN_ID}").fetchall(), len(parts)


def expected(kind: str, rows: pa.Table) -> list[Any]:
    said = rows.to_pylist()
    for row in said:
        row["time_ns"] //= 1000
    return [tuple(row.values()) for row in said]


NUMBERS = st.none() | st.integers(-(2**40), 2**40) | st.integers(-3, 3)
ROWS = st.lists(
    st.fixed_dictionaries({
        "step": st.sampled_from([0, 1, 999, 162_240, 3 * 10**9]), "flow": st.sampled_from(["f1", "f2", "ü'\"\\"]),
        "ack": NUMBERS,
        "rtt_ns": NUMBERS, "sacked_bytes": NUMBERS, "duplicate": st.none() | st.booleans(),
        "clock": st.sampled_from([0, 0, 0, 1, 10**12]),
    }),
    min_size=1, max_size=60,
)  # fmt: skip


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROWS)
def test_every_value_comes_back_whatever_the_steps_gaps_and_clocks(
    server: store_lab.Database, rows: list[dict[str, Any]]
) -> None:
    at, listed = 0, []
    for row in rows:
        at += row["step"]
        rtt = row["rtt_ns"]
        listed.append({
            "time_ns": START + at + row["clock"], "t_s": at / 1e9, "flow": row["flow"], "ack": row["ack"],
            "rtt_us": None if rtt is None else rtt / 1000, "sacked_bytes": row["sacked_bytes"],
            "duplicate": row["duplicate"],
        })  # fmt: skip
    table = table_of("acks", listed)
    unpacked, _ = through(server, "acks", table)

    def key(row: Any) -> str:
        return repr(row)

    assert sorted(unpacked, key=key) == sorted(expected("acks", table), key=key)


def test_rows_of_a_key_stay_in_order_and_large_runs_become_several_parts(server: store_lab.Database) -> None:
    count = packed.ROWS + 10
    rows = [{"time_ns": START + i * 1000, "t_s": i / 1e6, "flow": "f1", "cwnd_packets": i % 7} for i in range(count)]
    unpacked, parts = through(server, "sockets", table_of("sockets", rows))
    assert parts == 2
    assert unpacked == expected("sockets", table_of("sockets", rows))


@pytest.mark.parametrize(
    ("column", "values"),
    [("t_s", [0.0, float("nan")]), ("t_s", [0.0, None]), ("rtt_us", [1.0, 1e300])],
    ids=["nan", "null", "large"],
)
def test_what_is_no_time_or_no_number_is_refused(column: str, values: list[Any]) -> None:
    rows = [{"time_ns": START, "t_s": 0.0, "flow": "f", column: value} for value in values]
    with pytest.raises(StoreUsageError, match=f"acks.{column}.*warpbed collect"):
        list(packed.parts("acks", records.SCHEMAS["acks"], RUN_ID, table_of("acks", rows)))


def test_a_minute_takes_a_fifth_of_what_rows_would(timescale: debian_server.Server, tmp_path: Path) -> None:
    """Rows as a default run leaves them: paced, with times and round-trip times of nanoseconds, 3000 of each record a second."""
    results = store_lab.results(tmp_path, 10.0, (Case("reno", 50, 1),))
    (run,) = folder.find(results)
    count = 30_000
    random = np.random.default_rng(1)
    time_ns = START + np.cumsum(random.integers(200_000, 460_000, count))
    for kind, own in {
        "acks": {"ack": np.arange(count) * 2896, "rtt_us": random.integers(10**8, 15 * 10**7, count) / 1e3,
                 "sacked_bytes": np.zeros(count, np.int64), "duplicate": np.zeros(count, np.bool_),
                 "window_bytes": np.full(count, 6_291_456), "in_flight_bytes": 2896 * random.integers(400, 404, count)},
        "sockets": {"cwnd_packets": 400 + np.arange(count) // 400, "snd_nxt": np.arange(count) * 2896,
                    "snd_una": np.arange(count) * 2896, "srtt_us": 120_000 + np.cumsum(random.integers(-9, 10, count))},
    }.items():  # fmt: skip
        known = {**own, "time_ns": time_ns, "t_s": (time_ns - START) / 1e9, "flow": np.full(count, "f1", dtype=object)}
        columns = {name: known.get(name, [None] * count) for name, _ in records.SCHEMAS[kind]}
        records.write(run / "records", kind, columns)
    database = store_lab.make(timescale, "a_minute")
    size = "SELECT pg_database_size(current_database())"
    before = database.rows(size)[0][0]
    assert load(database, results) == ["stored"]
    took = database.rows(size)[0][0] - before
    assert contents(database)["acks"] == contents(database)["sockets"] == count
    assert took * 6 < 25_000_000, f"{took * 6 / 1e6:.1f} MB a minute"


def test_a_minute_of_the_quickstart_takes_less_than_25_mb(
    kernel: GuestKernel, timescale: debian_server.Server, tmp_path: Path
) -> None:
    """One of its runs as a guest makes it, with every packet acknowledged: about 12 MB; with a row per record it took 107."""
    spec = YAML(typ="safe").load(ROOT / "experiments/quickstart.yml")
    for several in ("sweep", "repeats", "guards", "published"):
        spec.pop(several, None)
    assert spec["duration"] == "60s"
    results = kept_results.results(tmp_path, json.dumps(spec))
    database = store_lab.make(timescale, "a_real_minute")
    size = "SELECT pg_database_size(current_database())"
    before = database.rows(size)[0][0]
    assert load(database, results) == ["stored"]
    assert contents(database)["acks"] > 200_000
    took = database.rows(size)[0][0] - before
    assert took < 25_000_000, f"{took / 1e6:.1f} MB"


def loosen(database: store_lab.Database) -> None:
    """The tables as they were made before: a row each, times in microseconds."""
    with connected("owner", database.url, autocommit=True) as connection:
        for table in tables.tables():
            if table.packed:
                connection.execute(f"CREATE TABLE rows_of AS SELECT * FROM {table.name}")
                connection.execute(f"DROP VIEW {table.name}")
                connection.execute(f"DROP TABLE {table.stored}")
                connection.execute(f"ALTER TABLE rows_of RENAME TO {table.name}")
                connection.execute(f"ALTER TABLE {table.name} ALTER time SET NOT NULL")
                connection.execute(
                    f"SELECT create_hypertable('{table.name}', by_range('run_id', 64::bigint), "
                    "create_default_indexes => false, migrate_data => true)"
                )
        connection.execute("UPDATE schema_version SET tables = 'before'")


def test_a_database_with_a_row_per_packet_is_migrated_and_loses_nothing(
    database: store_lab.Database, made: Path
) -> None:
    load(database, made)
    digest = "SELECT count(*), sum(hashtextextended(x::text, 0)::numeric) FROM {} x"
    before = {name: database.rows(digest.format(name)) for name in packed.KEYS}
    loosen(database)
    with connected("owner", database.url, autocommit=True) as connection:
        with pytest.raises(StoreUsageError, match="store migrate"):
            migrate.require(connection)
        assert migrate.migrate(connection) and not migrate.migrate(connection)
    assert {name: database.rows(digest.format(name)) for name in packed.KEYS} == before
    assert set(load(database, made)) == {"present"}
    assert database.rows(
        "SELECT count(*) FROM timescaledb_information.hypertables WHERE hypertable_name LIKE '%loose'"
    ) == [(0,)]


def test_queues_that_stand_idle_take_next_to_nothing(server: store_lab.Database) -> None:
    rows = [
        {
            "time_ns": START + i * 10**7,
            "t_s": i / 100,
            "node": "r1",
            "interface": "e1",
            "qdisc": "pfifo",
            "backlog_packets": 0,
            "drops": 0,
        }
        for i in range(6000)
    ]
    unpacked, _ = through(server, "queues", table_of("queues", rows))
    assert len(unpacked) == 6000
    ((size,),) = server.rows("SELECT sum(pg_column_size(q.*)) FROM queues_packed q")
    assert size < 6000


def test_the_files_are_not_touched(made: Path) -> None:
    for run in folder.find(made):
        assert reading.names(pq.read_schema(run / "records/acks.parquet")) == [
            name for name, _ in records.SCHEMAS["acks"]
        ]
