# SPDX-License-Identifier: Apache-2.0
"""Give the space of forgotten runs back to the disk.

A deleted row's place stays with its table, and vacuuming alone returns only what lies at a table's end. So the chunks that held
the runs are rewritten (VACUUM FULL), which the owner may, and which needs as much free disk as their remaining rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
from psycopg import sql

from store import tables

CHUNKS = """
    SELECT chunk_schema, chunk_name FROM timescaledb_information.chunks
    WHERE hypertable_schema = %s AND hypertable_name = %s AND NOT is_compressed
    AND EXISTS (SELECT FROM unnest(%s::bigint[]) run WHERE run >= range_start_integer AND run < range_end_integer)
"""


def rewritten(connection: psycopg.Connection[Any], runs: Sequence[int]) -> bool:
    """Rewrite what held these runs, as the owner and outside of a transaction; False where the disk has no room for that."""
    try:
        for table in _places(connection, runs):
            connection.execute(sql.SQL("VACUUM (FULL) {}").format(table))
    except psycopg.errors.DiskFull:
        return False
    return True


def _places(connection: psycopg.Connection[Any], runs: Sequence[int]) -> Iterator[sql.Identifier]:
    for table in tables.tables():
        if table.timed:
            for schema, name in connection.execute(CHUNKS, [tables.SCHEMA, table.stored, list(runs)]).fetchall():
                yield sql.Identifier(schema, name)
        else:
            yield sql.Identifier(tables.SCHEMA, table.stored)
