# SPDX-License-Identifier: Apache-2.0
"""The store without a server: DuckDB over the Parquet files of result folders, with the database's tables as views."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from collectors import reading, records
from store import derive
from store.folder import RunFolder, reasons

RUN_TYPES = {
    "seed": pa.int64(), "started_at": pa.timestamp("us", "UTC"), "ended_at": pa.timestamp("us", "UTC"),
    "clock_at": pa.timestamp("us", "UTC"), "made_at": pa.timestamp("us", "UTC"),
    "duration_s": pa.float64(), "wall_s": pa.float64(), "finest_ms": pa.int32(),
}  # fmt: skip
MACROS = """
CREATE MACRO width_ms(finest, wanted) AS greatest(finest, CASE WHEN wanted >= 600000 THEN 600000 WHEN wanted >= 60000 THEN 60000
    WHEN wanted >= 10000 THEN 10000 WHEN wanted >= 1000 THEN 1000 WHEN wanted >= 100 THEN 100 ELSE 10 END);
"""


@contextmanager
def opened(folders: Sequence[RunFolder], numbers: Sequence[int] | None = None) -> Iterator[Any]:
    """A DuckDB connection with every table of the store; nothing is read but what a query asks for.

    numbers: the runs' run_id, 1, 2, 3, … by default
    """
    ids = list(numbers) if numbers is not None else list(range(1, len(folders) + 1))
    with duckdb.connect(":memory:") as database:
        database.execute("SET TimeZone = 'UTC'")
        database.execute(MACROS)
        _register(database, "runs", _runs(folders, ids))
        _register(
            database,
            "run_params",
            _rows(ids, folders, "params", [("name", pa.string()), ("value", pa.string()), ("number", pa.float64())]),
        )
        _register(
            database,
            "run_metrics",
            _rows(ids, folders, "metrics", [("name", pa.string()), ("unit", pa.string()), ("value", pa.float64())]),
        )
        _register(
            database,
            "run_reasons",
            _table(
                [(run_id, *row) for run_id, folder in zip(ids, folders, strict=True) for row in reasons(folder)],
                [
                    ("run_id", pa.int64()),
                    ("number", pa.int32()),
                    ("rule", pa.string()),
                    ("severity", pa.string()),
                    ("message", pa.string()),
                ],
            ),
        )
        _register(
            database,
            "widths",
            _table(
                [(run_id, width) for run_id, folder in zip(ids, folders, strict=True) for width in folder.widths],
                [("run_id", pa.int64()), ("width_ms", pa.int32())],
            ),
        )
        _register(
            database,
            "planned_events",
            _table(
                [
                    (run_id, time_ns, t_s, "", kind, text)
                    for run_id, folder in zip(ids, folders, strict=True)
                    for time_ns, t_s, kind, text in folder.planned
                ],
                [
                    ("run_id", pa.int64()),
                    ("time_ns", pa.int64()),
                    ("t_s", pa.float64()),
                    ("flow", pa.string()),
                    ("kind", pa.string()),
                    ("text", pa.string()),
                ],
            ),
        )
        for kind in records.SCHEMAS:
            _view(database, kind, folders, ids)
        for name, query in derive.DERIVED.items():
            database.execute(f'CREATE VIEW "{name}_ns" AS {query}')
            database.execute(f'CREATE VIEW "{name}" AS SELECT *, {TIME} FROM "{name}_ns"')
        yield database


TYPES = {
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR",
    pa.bool_(): "BOOLEAN",
}
TIME = "make_timestamptz(time_ns // 1000) AS time"


def _register(database: Any, name: str, table: Any) -> None:
    database.register(f"arrow_{name}", table)
    database.execute(f'CREATE TABLE "{name}" AS SELECT * FROM "arrow_{name}"')
    database.unregister(f"arrow_{name}")


def _runs(folders: Sequence[RunFolder], ids: Sequence[int]) -> Any:
    columns: dict[str, list[Any]] = {"run_id": list(ids)}
    for folder in folders:
        for name, value in asdict(folder.row).items():
            columns.setdefault(name, []).append(value)
    types = {"run_id": pa.int64(), **RUN_TYPES}
    return pa.table({name: pa.array(values, types.get(name, pa.string())) for name, values in columns.items()})


def _rows(ids: Sequence[int], folders: Sequence[RunFolder], method: str, schema: list[tuple[str, Any]]) -> Any:
    rows = [(run_id, *row) for run_id, folder in zip(ids, folders, strict=True) for row in getattr(folder, method)()]
    return _table(rows, [("run_id", pa.int64()), *schema])


def _table(rows: list[tuple[Any, ...]], schema: list[tuple[str, Any]]) -> Any:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.table({name: pa.array(list(values), kind) for (name, kind), values in zip(schema, columns, strict=True)})


def _view(database: Any, kind: str, folders: Sequence[RunFolder], ids: Sequence[int]) -> None:
    """A record of all runs as one view; of runs without it there are no rows."""
    names = [name for name, _ in records.SCHEMAS[kind]]
    parts = []
    for run_id, folder in zip(ids, folders, strict=True):
        if file := folder.records.get(kind):
            schema = pq.read_schema(file)
            columns = ", ".join(
                f"CAST({_read(name, schema)} AS {TYPES[wanted]}) AS {_quoted(name)}"
                for name, wanted in records.SCHEMAS[kind]
            )
            parts.append(
                f"SELECT {run_id}::BIGINT AS run_id, {columns} FROM read_parquet('{_literal(file)}', hive_partitioning = false)"
            )
    if not parts:
        empty = pa.schema([("run_id", pa.int64()), *records.SCHEMAS[kind]]).empty_table()
        _register(database, f"{kind}_empty", empty)
        parts = [f'SELECT * FROM "{kind}_empty"']
    time = f", {TIME}" if "time_ns" in names else ""
    database.execute(f'CREATE VIEW "{kind}" AS SELECT *{time} FROM ({" UNION ALL ".join(parts)})')


def _literal(file: Path) -> str:
    """A path that stands for this one file, within quotes of SQL: each character that DuckDB takes for a pattern, as a set of one."""
    return re.sub(r"[*?\[]", r"[\g<0>]", str(file)).replace("'", "''")


def _read(name: str, schema: Any) -> str:
    """What gives a column: the file's, null where it has none, and the seconds that files with a row per ACK leave out."""
    if name == reading.SECONDS and (start := reading.start_ns(schema)) is not None:
        return f"CAST({_quoted(reading.TIME)} - {start} AS DOUBLE) / 1e9"
    return _quoted(name) if name in schema.names else "NULL"


def _quoted(name: str) -> str:
    return f'"{name}"'
