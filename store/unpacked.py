# SPDX-License-Identifier: Apache-2.0
"""A database from before packed.py: its tables with a row per packet become parts, run by run, when the schema is migrated."""

from __future__ import annotations

from typing import Any

import psycopg
import pyarrow as pa
from psycopg import sql

from store import ingest, packed, tables

SUFFIX = "_loose"


def set_aside(connection: psycopg.Connection[Any]) -> list[tables.Table]:
    """Rename the tables that have a packed record's name, which its view is to have; returns which there are."""
    moved = []
    for table in tables.tables():
        row = connection.execute(
            "SELECT relkind FROM pg_class WHERE oid = to_regclass(%s)", [f'{tables.SCHEMA}."{table.name}"']
        ).fetchone()
        if table.packed and row is not None and row[0] == "r":
            connection.execute(
                sql.SQL("ALTER TABLE {} RENAME TO {}").format(
                    sql.Identifier(tables.SCHEMA, table.name), sql.Identifier(table.name + SUFFIX)
                )
            )
            moved.append(table)
    return moved


def pack(connection: psycopg.Connection[Any], table: tables.Table) -> None:
    """Put the rows of a table that was set aside into parts, and drop it."""
    loose = sql.Identifier(tables.SCHEMA, table.name + SUFFIX)
    there = connection.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped",
        [loose.as_string(connection)],
    ).fetchall()
    names = {name for (name,) in there}
    runs = connection.execute(sql.SQL("SELECT DISTINCT run_id FROM {} ORDER BY 1").format(loose)).fetchall()
    for (run_id,) in runs:
        for rows in _batches(connection, table, loose, names, run_id):
            ingest.copy_parts(connection, table, ingest.packed_parts(table, run_id, rows))
    connection.execute(sql.SQL("DROP TABLE {}").format(loose))


def _batches(
    connection: psycopg.Connection[Any], table: tables.Table, loose: sql.Identifier, there: set[str], run_id: int
) -> Any:
    """A run's rows as tables of Arrow. Times were kept in microseconds: the run's start is what fits all of them."""
    start = sql.SQL(
        "SELECT max((extract(epoch FROM time) * 1000000)::bigint * 1000 - round(t_s * 1e9)::bigint) FROM {} WHERE run_id = %s"
    )
    row = connection.execute(start.format(loose), [run_id]).fetchone()
    assert row is not None
    columns = [
        sql.SQL("round(t_s * 1e9)::bigint + {}").format(sql.Literal(row[0])) if name == "time_ns"
        else sql.Identifier(name) if name in there else sql.SQL("NULL")
        for name, _ in table.columns
    ]  # fmt: skip
    order = sql.SQL(", ").join(map(sql.Identifier, (*table.key, "time", "t_s")))
    query = sql.SQL("SELECT {} FROM {} WHERE run_id = {} ORDER BY {}").format(
        sql.SQL(", ").join(columns), loose, sql.Literal(run_id), order
    )
    with connection.cursor(name="loose") as cursor:
        cursor.execute(query)
        while fetched := cursor.fetchmany(packed.ROWS * 4):
            lists = zip(*fetched, strict=True)
            arrays = [pa.array(list(values), kind) for values, (_, kind) in zip(lists, table.columns, strict=True)]
            yield pa.table(arrays, names=[name for name, _ in table.columns])
