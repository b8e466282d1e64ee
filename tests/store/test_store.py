# SPDX-License-Identifier: Apache-2.0
"""The store on a real TimescaleDB: what is in the files is in the database, whole or not at all."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from base.paths import ROOT
from benchmarks import store_lab
from benchmarks.make_results import Case
from benchmarks.store_lab import contents, load
from collectors import records
from store import actions, copy_binary, debian_server, files, folder, ingest, migrate, questions, tables
from store.connect import connected
from store.errors import StoreError, StoreUsageError

pytestmark = pytest.mark.root


@pytest.fixture(scope="module")
def loaded(timescale: debian_server.Server, made: Path) -> store_lab.Database:
    database = store_lab.make(timescale, "loaded")
    load(database, made)
    return database


def test_every_row_of_the_files_is_in_the_database(loaded: store_lab.Database, made: Path) -> None:
    held = contents(loaded)
    with files.opened([folder.read(run) for run in folder.find(made)]) as views:
        for kind in [*records.SCHEMAS, *tables.POINT_COLUMNS]:
            assert held[kind] == views.execute(f'SELECT count(*) FROM "{kind}"').fetchone()[0], kind
    assert held["sockets"] > 10_000
    assert held["runs"] == 4


def test_values_and_times_survive(loaded: store_lab.Database, made: Path) -> None:
    run = folder.read(next(run for run in folder.find(made) if "250p" in run.name))
    query = ("SELECT flow, {time}, t_s, rtt_us, ack, duplicate FROM acks JOIN runs USING (run_id) "
             "WHERE run = '" + run.row.run + "' ORDER BY flow, t_s, ack LIMIT 2000 OFFSET 300")  # fmt: skip
    with files.opened([run]) as views:
        wanted = views.execute(query.format(time="epoch_us(time)")).fetchall()
    assert loaded.rows(query.format(time="(extract(epoch FROM time) * 1000000)::bigint")) == wanted
    assert len(wanted) == 2000


@pytest.mark.parametrize("name", sorted(questions.QUESTIONS))
def test_the_database_and_the_files_answer_alike(name: str, loaded: store_lab.Database, made: Path) -> None:
    question = questions.find(name)
    run = next(run.name for run in folder.find(made) if "250p" in run.name)
    given = {
        key: value for key, value in {"experiment": "quickstart", "run": run}.items() if key in question.parameters
    }
    values = questions.bound(question, given)
    with connected("reader", loaded.url) as connection:
        of_database = questions.ask_database(connection, question, values)
    with files.opened([folder.read(path) for path in folder.find(made)]) as views:
        of_files = questions.ask_files(views, question, values)
    assert of_database.columns == of_files.columns
    assert len(of_database.rows) == len(of_files.rows)
    for left, right in zip(of_database.rows, of_files.rows, strict=True):
        assert [pytest.approx(value, rel=1e-9) if isinstance(value, float) else value for value in left] == list(right)
    assert of_files.rows or name == "reasons"


def test_loading_again_changes_nothing(database: store_lab.Database, made: Path) -> None:
    assert set(load(database, made)) == {"stored"}
    before = (contents(database), database.rows("SELECT run_id, digest FROM runs ORDER BY 1"))
    assert set(load(database, made)) == {"present"}
    assert (contents(database), database.rows("SELECT run_id, digest FROM runs ORDER BY 1")) == before


def test_a_run_without_captures_is_loaded_and_its_flows_have_points(
    database: store_lab.Database, tmp_path: Path
) -> None:
    results = store_lab.results(tmp_path, 5.0, (Case("reno", 50, 1),))
    (run,) = folder.find(results)
    known = {"flows": "flow cca src dst start_s goodput_mbps delivered_bytes",
             "intervals": "time_ns t_s flow width_s delivered_bytes goodput_mbps"}  # fmt: skip
    for kind, names in known.items():
        rows = pq.read_table(run / f"records/{kind}.parquet")
        records.write(run / "records", kind, {
            name: rows[name] if name in names.split() else [None] * rows.num_rows for name, _ in records.SCHEMAS[kind]
        })  # fmt: skip
    records.write(run / "records", "acks", {name: [] for name, _ in records.SCHEMAS["acks"]})
    assert load(database, results) == ["stored"]
    assert database.rows("SELECT flow, packets IS NULL, goodput_mbps > 0 FROM flows") == [("f1", True, True)]
    assert database.rows("SELECT count(*) > 0 FROM flow_points WHERE goodput_mbps > 0") == [(True,)]


def test_a_run_whose_records_changed_is_replaced(database: store_lab.Database, tmp_path: Path) -> None:
    results = store_lab.results(tmp_path, 5.0, (Case("reno", 50, 1),))
    load(database, results)
    before = contents(database)
    run = next(results.glob("*/run.json"))
    run.write_text(run.read_text().replace('"wall_s"', '"wall_s": 1, "other_s"'))
    assert load(database, results) == ["replaced"]
    assert contents(database) == before


def test_the_same_run_with_other_packets_is_told_with_what_may_be_the_cause(
    database: store_lab.Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = store_lab.results(tmp_path, 5.0, (Case("reno", 50, 1),))
    file = next(results.glob("*/run.json"))
    before = json.loads(file.read_text())

    def told(packets: str, **inputs: Any) -> str:
        file.write_text(json.dumps({**before, "packets": packets, "inputs": inputs}))
        actions.load(results, database.url, io.StringIO())
        return capsys.readouterr().err

    assert told("a" * 64, userland={"iperf3": "3.12-1", "libc6": "2.36-9"}, agent="1") == ""
    assert told("a" * 64, userland={"iperf3": "3.12-2", "libc6": "2.36-9"}, agent="1") == ""
    message = told("b" * 64, userland={"iperf3": "3.18-2\033[2J", "libc6": "2.36-9"}, agent="2")
    assert "the store had this run with other packets; what differs: iperf3 3.12-2 → 3.18-2" in message
    assert "Warpbed's programs in the guest" in message and "libc6" not in message and "\033" not in message
    assert "nothing that is recorded differs" in told(
        "c" * 64, userland={"iperf3": "3.18-2\033[2J", "libc6": "2.36-9"}, agent="2"
    )
    assert told("", agent="3") == ""


def test_a_server_killed_during_ingestion_shows_nothing_of_the_run(
    tmp_path: Path, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = debian_server.start(tmp_path / "pg", **store_lab.FAST)
    try:
        database = store_lab.make(server, "killed")
        copy = ingest.copy_parts

        def copy_then_kill(connection: Any, table: tables.Table, source: Any) -> int:
            rows = copy(connection, table, source)
            if table.name == "sockets":
                assert rows > 1000
                server.kill()
            return rows

        run = folder.find(made)[0]
        with monkeypatch.context() as patched:
            patched.setattr(ingest, "copy_parts", copy_then_kill)
            with pytest.raises(StoreError, match="run the same command again to resume"):
                load(database, run)
        server = debian_server.start(tmp_path / "pg", **store_lab.FAST)
        assert set(contents(database).values()) == {0}
        assert load(database, run) == ["stored"]
        assert contents(database)["runs"] == 1
    finally:
        server.kill()


KILLED = """
import os, signal, sys
from pathlib import Path
from store import actions, ingest
copy = ingest.copy_parts
def dying(connection, table, source):
    rows = copy(connection, table, source)
    if table.name == "sockets":
        os.kill(os.getpid(), signal.SIGKILL)
    return rows
ingest.copy_parts = dying
actions.load(Path(sys.argv[1]), None, sys.stdout)
"""


def test_a_collector_killed_during_ingestion_leaves_nothing(database: store_lab.Database, made: Path) -> None:
    run = folder.find(made)[0]
    done = subprocess.run([sys.executable, "-c", KILLED, str(run)], env=database.environment, cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGKILL
    assert set(contents(database).values()) == {0}
    assert load(database, run) == ["stored"]


def load_until_full(database: store_lab.Database, path: Path) -> None:
    for _ in range(20):
        load(database, path)
        database.rows("DELETE FROM runs RETURNING 1", "writer")  # the next round stores them all again


def fill_disk(server: debian_server.Server) -> None:
    """Leave room for the tables, not for the rows."""
    with store_lab.admin(server, "full") as admin:
        for number in range(200):  # 2 MB each
            make = f"CREATE TABLE ballast_{number} AS SELECT repeat(md5(i::text), 60) FROM generate_series(1, 1000) i"
            try:
                admin.execute(make)
            except psycopg.errors.DiskFull:
                break
        for table in range(number - 4, number):
            admin.execute(f"DROP TABLE ballast_{table}")
        admin.execute("CHECKPOINT")


def test_a_full_disk_stores_nothing_and_the_same_command_completes_it(tmp_path: Path, made: Path) -> None:
    small = {**store_lab.FAST, "max_wal_size": "32MB", "min_wal_size": "32MB", "wal_level": "minimal",
        "max_wal_senders": "0",
             "wal_recycle": "off", "shared_buffers": "16MB"}  # fmt: skip
    with debian_server.running(tmp_path / "pg", size="150m", **small) as server:
        database = store_lab.make(server, "full")
        fill_disk(server)
        with pytest.raises(StoreError, match="nothing of this run is stored"):
            load_until_full(database, made)
        held = contents(database)
        partial = {run for (run,) in database.rows("SELECT run_id FROM runs")}
        complete = {run for (run,) in database.rows("SELECT DISTINCT run_id FROM events")}
        assert partial <= complete, held
        pid = subprocess.run(
            ["pgrep", "-P", str(server.process.pid)], capture_output=True, text=True, check=True
        ).stdout.split()[0]
        subprocess.run(
            ["nsenter", "--target", pid, "--mount", "mount", "-o", "remount,size=2g", f"{tmp_path}/pg/data"], check=True
        )
        assert set(load(database, made)) <= {"stored", "present"}
        assert contents(database)["runs"] == 4


def test_nothing_of_a_killed_server_is_left(tmp_path: Path) -> None:
    server = debian_server.start(tmp_path / "pg", **store_lab.FAST)
    before = subprocess.run(["pgrep", "-f", str(tmp_path)], capture_output=True, text=True, check=False).stdout.split()
    assert before
    os.kill(server.process.pid, signal.SIGKILL)
    server.process.wait()
    left = before
    for _ in range(100):
        left = subprocess.run(
            ["pgrep", "-f", str(tmp_path)], capture_output=True, text=True, check=False
        ).stdout.split()
        if not left:
            break
        signal.sigtimedwait([], 0.1)
    assert not left
    assert str(tmp_path) not in Path("/proc/self/mountinfo").read_text()


@pytest.mark.parametrize(
    ("role", "statement"),
    [
        ("reader", "DELETE FROM runs"),
        ("reader", "INSERT INTO student_t VALUES (0, 0)"),
        ("reader", "CREATE TABLE mine (x integer)"),
        ("reader", "CREATE TABLE public.mine (x integer)"),
        ("reader", "CREATE TEMP TABLE mine (x integer)"),
        ("writer", "CREATE TABLE mine (x integer)"),
        ("writer", "DROP TABLE runs"),
        ("writer", "DELETE FROM schema_version"),
        ("writer", "COPY runs TO PROGRAM 'true'"),
        ("owner", "COPY runs TO PROGRAM 'true'"),
        ("owner", "CREATE ROLE mine"),
    ],
)
def test_a_role_may_do_its_work_and_no_more(role: str, statement: str, loaded: store_lab.Database) -> None:
    with pytest.raises(StoreUsageError):
        loaded.rows(statement, role)
    assert (
        loaded.rows("SELECT rolsuper OR rolcreaterole OR rolcreatedb FROM pg_roles WHERE rolname LIKE 'warpbed%'")
        == [(False,)] * 3
    )


def test_a_database_of_another_version_is_reported(database: store_lab.Database, made: Path) -> None:
    for change, message in (("number = number + 1", "migrated by a newer one"), ("number = number - 2", "store migrate"),
                          ("tables = 'x'", "store migrate")):  # fmt: skip
        database.rows(f"UPDATE schema_version SET {change} RETURNING 1", "owner")
        with pytest.raises(StoreUsageError, match=message):
            actions.load(made, database.url, sys.stdout)
    database.rows("DROP TABLE schema_version", "owner")
    with pytest.raises(StoreUsageError, match="store migrate"):
        actions.status(database.url)


def test_compression_is_left_out_for_the_edition_alone(database: store_lab.Database) -> None:
    """Debian's edition has none: it knows each statement and refuses it for its licence; a word that none knows is refused otherwise."""
    assert database.rows("SELECT current_setting('timescaledb.license')") == [("apache",)]
    assert database.rows("SELECT proc_name FROM timescaledb_information.jobs WHERE hypertable_schema = 'warpbed'") == []
    with connected("owner", database.url, autocommit=True) as connection:
        connection.execute(migrate.NEWEST_RUN)
        settings = ""
        for table in tables.tables():
            if not table.timed:
                assert list(migrate.compression(table)) == []
                continue
            now, settings, policy = migrate.compression(table)
            connection.execute(now)
            for statement in (settings, policy):
                with pytest.raises(psycopg.errors.FeatureNotSupported, match='under the current "apache" license'):
                    connection.execute(statement)
        with pytest.raises(psycopg.errors.Error) as raised:
            connection.execute(settings.replace("compress_orderby", "compress_orderly"))
        assert not isinstance(raised.value, psycopg.errors.FeatureNotSupported)


@pytest.mark.parametrize("edition", ["timescale", "apache", None])
def test_the_servers_edition_decides_on_compression(edition: str | None, database: store_lab.Database) -> None:
    """Of the community edition all is asked for, up to what the Apache edition, which the server really is, refuses."""
    answer = "NULL" if edition is None else f"'{edition}'"
    with connected("owner", database.url) as connection:
        connection.execute("CREATE SCHEMA pretended")
        connection.execute(
            "CREATE FUNCTION pretended.current_setting(text, boolean) RETURNS text LANGUAGE sql"
            f" AS $$ SELECT {answer}::text $$"
        )
        connection.execute("SET LOCAL search_path = pretended, pg_catalog, warpbed, public")
        assert connection.execute("SELECT current_setting('timescaledb.license', true)").fetchone() == (edition,)
        if edition == "timescale":
            with pytest.raises(psycopg.errors.FeatureNotSupported, match='under the current "apache" license'):
                migrate._compress(connection)
        else:
            migrate._compress(connection)
        connection.rollback()
    assert database.rows("SELECT proc_name FROM timescaledb_information.jobs WHERE hypertable_schema = 'warpbed'") == []


def test_a_new_column_of_a_record_is_migrated_in(database: store_lab.Database, monkeypatch: pytest.MonkeyPatch) -> None:
    more = {
        **records.SCHEMAS,
        "flows": [*records.SCHEMAS["flows"], ("colour", pa.string())],
        "new": [("time_ns", pa.int64()), ("t_s", pa.float64())],
    }
    monkeypatch.setattr(records, "SCHEMAS", more)
    with connected("owner", database.url, autocommit=True) as connection:
        assert migrate.migrate(connection)
        assert not migrate.migrate(connection)
        migrate.require(connection)
    assert database.rows("SELECT colour FROM flows") == []
    assert database.rows("SELECT time FROM new") == []


def test_hostile_names_and_values_are_stored_as_they_are(database: store_lab.Database, tmp_path: Path) -> None:
    results = store_lab.results(tmp_path, 5.0, (Case("reno", 50, 1),))
    nasty = "'; DROP TABLE runs; --\\ \"\n\t\\u0000 \0 %s $1 ☃"
    # an experiment is named as its folder is, whatever run.json says; a folder's name holds anything but NUL and a slash
    folder_name = nasty.replace("\0", "")
    results = results.rename(results.with_name(folder_name))
    run = next(results.glob("*/run.json"))
    document = json.loads(run.read_text())
    document.update(experiment="another", params={nasty: nasty, "nan": float("nan")}, seed=2**64, host=nasty)
    document["metrics"]["smoothness_cv"] = {nasty: 1.0}
    run.write_text(json.dumps(document))
    assert load(database, results) == ["stored"]
    kept = nasty.replace("\0", "�").encode("utf-8", "replace").decode()
    assert database.rows("SELECT experiment, host, seed FROM runs") == [(folder_name, kept, None)]
    assert (kept, kept) in database.rows("SELECT name, value FROM run_params")


@pytest.mark.parametrize(
    "part", [{"seed": 2**80}, {"host": "\ud800"}, {"params": {"deep": ["x"]}}], ids=["seed", "text", "list"]
)
def test_values_that_no_run_has_make_it_unreadable_and_nothing_is_stored(
    database: store_lab.Database, tmp_path: Path, capsys: pytest.CaptureFixture[str], part: dict[str, Any]
) -> None:
    results = store_lab.results(tmp_path, 5.0, (Case("reno", 50, 1),))
    run = next(results.glob("*/run.json"))
    run.write_text(json.dumps({**json.loads(run.read_text()), **part}))
    with pytest.raises(StoreError, match="1 of 1"):
        actions.load(results, database.url, sys.stdout)
    assert "not written by this Warpbed" in capsys.readouterr().err
    assert database.rows("SELECT count(*) FROM runs") == [(0,)]


def test_a_damaged_run_is_reported_and_the_others_are_stored(
    database: store_lab.Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = store_lab.results(
        tmp_path, 5.0, (Case("reno", 50, 1), Case("reno", 50, 2), Case("reno", 50, 3), Case("reno", 50, 4))
    )
    first, second, third, _ = sorted(results.iterdir())
    (first / "records/acks.parquet").write_bytes(b"PAR1 not")
    (second / "run.json").write_text("{")
    records.write(third / "records", "tcp_info", {name: [] for name, _ in records.SCHEMAS["tcp_info"]})
    (third / "records/tcp_info.parquet").rename(third / "records/acks.parquet")
    with pytest.raises(StoreError, match="3 of 4"):
        actions.load(results, database.url, sys.stdout)
    printed = capsys.readouterr().err
    assert "acks.parquet: not a readable Parquet file" in printed
    assert f"./warpbed collect {first}" in printed
    assert "column ack is missing" in printed
    assert contents(database)["runs"] == 1


def test_a_record_that_cannot_be_read_to_its_end_is_told_and_nothing_of_its_run_is_stored(
    database: store_lab.Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = store_lab.results(tmp_path, 5.0, (Case("reno", 50, 1), Case("reno", 50, 2)))
    first = min(results.iterdir())
    acks = first / "records/acks.parquet"
    content = bytearray(acks.read_bytes())
    content[4:2000] = bytes(1996)  # pages of values; what describes them stands at the end
    acks.write_bytes(bytes(content))
    with pytest.raises(StoreError, match="1 of 2"):
        actions.load(results, database.url, sys.stdout)
    assert f"{first}: a record cannot be read" in capsys.readouterr().err
    assert contents(database)["runs"] == 1


def test_no_server_and_no_database_say_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: Path) -> None:
    monkeypatch.setenv("WARPBED_STATE", str(tmp_path))
    monkeypatch.delenv("WARPBED_DATABASE", raising=False)
    for url, message in ((None, "dashboards up"), (f"postgresql:///warpbed?host={tmp_path}", "is it running"),
                       ("postgresql://u:secret@h/d", "PGPASSFILE"), ("nonsense://", "write postgresql://")):  # fmt: skip
        with pytest.raises(StoreUsageError, match=message) as caught:
            actions.load(made, url, sys.stdout)
        assert "secret" not in str(caught.value)
        assert caught.value.exit_code == 2


def test_the_passwords_file_has_to_be_private(tmp_path: Path) -> None:
    passwords = actions._passwords(tmp_path / "pgpass")
    assert (tmp_path / "pgpass").stat().st_mode & 0o777 == 0o600
    assert actions._passwords(tmp_path / "pgpass") == passwords
    assert len(set(passwords.values())) == 3
    (tmp_path / "pgpass").chmod(0o644)
    with pytest.raises(StoreUsageError, match="chmod 600"):
        actions._passwords(tmp_path / "pgpass")


def test_the_command_answers_from_files_without_a_server(made: Path, tmp_path: Path) -> None:
    command = [
        str(ROOT / "warpbed"),
        "store",
        "ask",
        "sweep",
        "--results",
        str(made),
        "--set",
        "experiment=quickstart",
        "--format",
        "json",
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "WARPBED_STATE": str(tmp_path)}
    )
    assert {row["cca"] for row in json.loads(done.stdout)} == {"reno", "cubic"}
    for arguments, message in (
        (["nothing"], "there are"),
        (["sweep", "--set", "x=1"], "no parameter"),
        (["queue", "--set", "width_ms=x"], "whole number"),
    ):
        bad = subprocess.run(
            [*command[:3], *arguments, "--results", str(made)], capture_output=True, text=True, check=False
        )
        assert bad.returncode == 2
        assert message in bad.stderr


VALUES = {
    "integer": st.integers(-(2**31), 2**31 - 1), "bigint": st.integers(-(2**63), 2**63 - 1),
    "double precision": st.floats(allow_nan=False), "boolean": st.booleans(),
    "text": st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
}  # fmt: skip
ARROW = {
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "double precision": pa.float64(),
    "boolean": pa.bool_(),
    "text": pa.string(),
}


@settings(max_examples=40)
@given(st.lists(st.tuples(*(st.none() | strategy for strategy in VALUES.values())), min_size=1, max_size=30))
def test_binary_copy_keeps_every_value(loaded: store_lab.Database, rows: list[tuple[Any, ...]]) -> None:
    columns = [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), ARROW.values(), strict=True)]
    batch = pa.RecordBatch.from_arrays(columns, names=list("abcde"))
    with connected("owner", loaded.url, autocommit=True) as connection:
        connection.execute(
            "CREATE TEMP TABLE copied (n serial, "
            + ", ".join(f"{c} {k}" for c, k in zip("abcde", VALUES, strict=True))
            + ")"
        )
        with (
            connection.cursor() as cursor,
            cursor.copy("COPY copied (a, b, c, d, e) FROM STDIN (FORMAT binary)") as copy,
        ):
            copy.write(copy_binary.HEADER + copy_binary.rows(batch) + copy_binary.TRAILER)
        fetched = connection.execute("SELECT a, b, c, d, e FROM copied ORDER BY n").fetchall()
        connection.execute("DROP TABLE copied")
    assert fetched == [(*row[:4], row[4].replace("\0", "�") if row[4] is not None else None) for row in rows]
