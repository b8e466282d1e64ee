# SPDX-License-Identifier: Apache-2.0
"""Put a run into the database: all of it in one transaction, once.

A run that is there with the same content is left alone; one whose files changed is replaced. Whatever stops this half way
(kill -9, a full disk, a lost connection) leaves what was there before, and the same call again completes it.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, Literal

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql

from store import copy_binary, files, packed, tables
from store.errors import StoreUsageError
from store.folder import RunFolder, reasons

Outcome = Literal["stored", "replaced", "present"]
BATCH_ROWS = 1 << 16


def ingest(
    connection: psycopg.Connection[Any], folder: RunFolder, tell: Callable[[str], None] = lambda message: None
) -> tuple[Outcome, int]:
    """Store a run; returns what was done and the rows written.

    tell: takes what is waited for, if anything is
    Raises psycopg's errors, which store.connect turns into StoreError, and StoreUsageError where the run's files cannot be
    read; nothing is stored then.
    """
    with connection.transaction():
        _lock(connection, f"{folder.row.experiment}/{folder.row.run}", tell)
        row = connection.execute(
            "SELECT run_id, digest FROM runs WHERE experiment = %s AND run = %s",
            [folder.row.experiment, folder.row.run],
        ).fetchone()
        if row is not None and row[1] == folder.row.digest:
            return "present", 0
        if row is not None:
            delete(connection, row[0])
        run_id = _insert_run(connection, folder)
        rows = 0
        with (
            _told(folder),
            files.opened([folder], [run_id]) as database,
            contextlib.closing(_ahead(_parts(database))) as parts,
        ):
            for table, group in itertools.groupby(parts, key=lambda part: part.table):
                rows += copy_parts(connection, table, group)
    return ("stored" if row is None else "replaced"), rows


def _lock(connection: psycopg.Connection[Any], key: str, tell: Callable[[str], None]) -> None:
    """One ingestion of a run at a time, whoever does it. Raises StoreUsageError where another one takes longer than lock_timeout."""
    row = connection.execute("SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))", [key]).fetchone()
    if row is not None and row[0]:
        return
    tell(f"{key}: waiting for another command that stores this run")
    try:
        connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [key])
    except psycopg.errors.LockNotAvailable as error:
        raise StoreUsageError(
            f"{key}: another command has not finished storing this run; is it stopped? Once it has ended, run the same command again"
        ) from error


@contextlib.contextmanager
def _told(folder: RunFolder) -> Iterator[None]:
    """Whatever reads the files says it in its own way."""
    try:
        yield
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise StoreUsageError(
            f"{folder.path}: a record cannot be read ({first}); ./warpbed collect makes the records again"
        ) from error


def contradiction(connection: psycopg.Connection[Any], folder: RunFolder) -> str | None:
    """What to tell where the database has this run with other packets, although the same run has the same ones; else None."""
    row = connection.execute(
        "SELECT environment FROM runs WHERE experiment = %s AND run = %s", [folder.row.experiment, folder.row.run]
    ).fetchone()
    stored, offered = (row[0] if row is not None else {}), json.loads(folder.row.environment)
    if not stored.get("packets") or not offered.get("packets") or stored["packets"] == offered["packets"]:
        return None
    ours, theirs = offered.get("userland") or {}, stored.get("userland") or {}
    causes = [
        f"{name} {theirs.get(name, 'none')} → {ours.get(name, 'none')}"
        for name in sorted({*ours, *theirs})
        if ours.get(name) != theirs.get(name)
    ]
    if offered.get("agent") != stored.get("agent"):
        causes.append("Warpbed's programs in the guest")
    cause = f"what differs: {', '.join(causes)}" if causes else "nothing that is recorded differs: report this"
    return f"{folder.path}: the store had this run with other packets; {cause}. ./warpbed diff RUN RUN shows the first packet"


def delete(connection: psycopg.Connection[Any], run_id: int) -> None:
    """Remove a run and all its rows."""
    for table in tables.tables():
        connection.execute(sql.SQL("DELETE FROM {} WHERE run_id = %s").format(sql.Identifier(table.stored)), [run_id])
    connection.execute("DELETE FROM runs WHERE run_id = %s", [run_id])


def forget(connection: psycopg.Connection[Any], experiment: str, run: str | None) -> list[int]:
    """Remove an experiment's runs, or one of them, from the database (the files stay); returns their numbers."""
    with connection.transaction():
        runs = connection.execute(
            "SELECT run_id FROM runs WHERE experiment = %s AND (%s::text IS NULL OR run = %s) FOR UPDATE",
            [experiment, run, run],
        ).fetchall()
        for (run_id,) in runs:
            delete(connection, run_id)
    return [run_id for (run_id,) in runs]


def prune(connection: psycopg.Connection[Any], keep_days: int) -> int:
    """Retention: remove runs that were ingested longer ago, as the owner; whole chunks are dropped, which is cheap.

    Returns how many runs went.
    """
    if keep_days < 1:
        raise StoreUsageError(f"--keep-days {keep_days}: a number of days from 1 on")
    with connection.transaction():
        old = [
            run_id
            for (run_id,) in connection.execute(
                "SELECT run_id FROM runs WHERE ingested_at < now() - make_interval(days => %s) FOR UPDATE", [keep_days]
            )
        ]
        if not old:
            return 0
        kept = connection.execute("SELECT min(run_id) FROM runs WHERE NOT run_id = ANY(%s)", [old]).fetchone()
        before = kept[0] if kept is not None and kept[0] is not None else max(old) + 1
        for table in tables.tables():
            if table.timed:
                connection.execute(
                    "SELECT count(*) FROM drop_chunks(%s::regclass, older_than => %s::bigint)",
                    [f"warpbed.{table.stored}", before],
                )
        for run_id in old:
            delete(connection, run_id)
    return len(old)


def _insert_run(connection: psycopg.Connection[Any], folder: RunFolder) -> int:
    values = asdict(folder.row)
    row = connection.execute(
        sql.SQL("INSERT INTO runs ({}) VALUES ({}) RETURNING run_id").format(
            sql.SQL(", ").join(map(sql.Identifier, values)), sql.SQL(", ").join(sql.Placeholder() * len(values))
        ),
        list(values.values()),
    ).fetchone()
    assert row is not None
    run_id: int = row[0]
    with connection.cursor() as cursor:
        for query, rows in (
            ("INSERT INTO run_params VALUES (%s, %s, %s, %s)", folder.params()),
            ("INSERT INTO run_metrics VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING", folder.metrics()),
            ("INSERT INTO run_reasons VALUES (%s, %s, %s, %s, %s)", reasons(folder)),
        ):
            if rows_of_run := [(run_id, *row) for row in rows]:
                cursor.executemany(query, rows_of_run)
    return run_id


@dataclass(frozen=True)
class Part:
    """Some rows of a table, as the server takes them."""

    table: tables.Table
    rows: int
    data: bytes


def _parts(database: Any) -> Iterator[Part]:
    """All rows of the files, and what is derived from them, table by table."""
    for table in tables.tables():
        if table.packed:
            yield from _packed(database, table)
            continue
        columns = ", ".join(f'"{name}"' for name, _ in table.sql_columns())
        for batch in database.execute(f'SELECT {columns} FROM "{table.name}"').to_arrow_reader(BATCH_ROWS):
            yield Part(table, batch.num_rows, copy_binary.rows(batch))


def _packed(database: Any, table: tables.Table) -> Iterator[Part]:
    reader = database.execute(f'SELECT * FROM "{table.name}"').to_arrow_reader(packed.READ_ROWS)
    for batch in reader:
        rows = pa.Table.from_batches([batch])
        for run_id in rows["run_id"].unique().to_pylist():
            of_run = rows.filter(pc.field("run_id") == run_id)
            yield from packed_parts(table, run_id, of_run)


def packed_parts(table: tables.Table, run_id: int, rows: Any) -> Iterator[Part]:
    """Rows of one run, an Arrow table with the record's columns, as parts of a packed table."""
    for count, data in packed.parts(table.name, table.columns, run_id, rows):
        yield Part(table, count, data)


def _ahead(parts: Iterator[Part]) -> Generator[Part]:
    """The same parts; the next one is made on a thread of its own while the server takes the last."""
    with ThreadPoolExecutor(max_workers=1) as thread:
        coming = thread.submit(next, parts, None)
        while (part := coming.result()) is not None:
            coming = thread.submit(next, parts, None)
            yield part


def copy_parts(connection: psycopg.Connection[Any], table: tables.Table, parts: Iterable[Part]) -> int:
    """Returns how many rows of the files they are."""
    names = [name for name, _ in table.sql_columns()]
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT binary)").format(
        sql.Identifier(table.stored), sql.SQL(", ").join(map(sql.Identifier, names))
    )
    rows = 0
    with connection.cursor() as cursor, cursor.copy(statement) as copy:
        copy.write(copy_binary.HEADER)
        for part in parts:
            copy.write(part.data)
            rows += part.rows
        copy.write(copy_binary.TRAILER)
    return rows
