# SPDX-License-Identifier: Apache-2.0
"""The tables that hold records, derived from collectors.records.SCHEMAS, so that a new record or column is there
as soon as it is collected.

Each has the record's columns with `run_id` before them; `time_ns` becomes `time` (timestamptz, microseconds; `t_s`
keeps the exact place in the run). Those with a time are hypertables over run_id. docs/store.md says why not over time.
Records of store.packed.KEYS are views of those columns over a table of parts, NAME_packed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from collectors import records
from store import derive, packed

SCHEMA = "warpbed"
RUNS_PER_CHUNK = 64

SQL_TYPES = {
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.float64(): "double precision",
    pa.string(): "text",
    pa.bool_(): "boolean",
}

# One row per bucket of a fixed width, flow or queue: what dashboards draw, whatever the length of the run.
# store/derive.py computes them; min, mean and max are kept so that a narrow peak stays visible.
POINT_COLUMNS: dict[str, list[tuple[str, pa.DataType]]] = {
    "flow_points": [
        ("width_ms", pa.int32()), ("time_ns", pa.int64()), ("t_s", pa.float64()), ("flow", pa.string()),
        *((name, pa.float64()) for name in derive.FLOW_VALUES),
    ],
    "queue_points": [
        ("width_ms", pa.int32()), ("time_ns", pa.int64()), ("t_s", pa.float64()), ("node", pa.string()),
        ("interface", pa.string()),
        *((name, pa.float64()) for name in derive.QUEUE_VALUES),
    ],
    "events": [
        ("time_ns", pa.int64()), ("t_s", pa.float64()), ("flow", pa.string()), ("kind", pa.string()),
        ("text", pa.string()),
    ],
}  # fmt: skip


@dataclass(frozen=True)
class Table:
    """A table filled by COPY: the name that queries know, its columns as in the files, whether it is a hypertable."""

    name: str
    columns: tuple[tuple[str, pa.DataType], ...]
    timed: bool

    @property
    def packed(self) -> bool:
        return self.name in packed.KEYS

    @property
    def stored(self) -> str:
        """The name of the table that holds the rows."""
        return f"{self.name}_packed" if self.packed else self.name

    @property
    def key(self) -> tuple[str, ...]:
        """What its index orders by, after run_id."""
        if self.packed:
            return packed.KEYS[self.name]
        names = [name for name, _ in self.columns]
        return tuple(name for name in ("width_ms", "flow", "node", "interface") if name in names)

    @property
    def order(self) -> str:
        """What its rows are ordered by within a key."""
        return "start_ns" if self.packed else "time"

    def sql_columns(self) -> list[tuple[str, str]]:
        """(name, type) of the table that holds the rows, run_id first."""
        columns = [("run_id", "bigint NOT NULL")]
        if self.packed:
            return columns + packed.sql_columns(self.name, self.columns)
        for name, kind in self.columns:
            time = "timestamptz NOT NULL" if self.timed else "timestamptz"
            columns.append(("time", time) if name == "time_ns" else (name, SQL_TYPES[kind]))
        return columns


def tables() -> Iterator[Table]:
    """Every table of rows that belong to a run."""
    for name, columns in {**records.SCHEMAS, **POINT_COLUMNS}.items():
        yield Table(name, tuple(columns), any(column == "t_s" for column, _ in columns))


def ddl(table: Table) -> Iterator[str]:
    """Statements that make the table or add what it misses; running them again changes nothing."""
    where = f'{SCHEMA}."{table.stored}"'
    columns = ", ".join(f'"{name}" {kind}' for name, kind in table.sql_columns())
    yield f"CREATE TABLE IF NOT EXISTS {where} ({columns})"
    for name, kind in table.sql_columns():
        if "NOT NULL" not in kind:
            yield f'ALTER TABLE {where} ADD COLUMN IF NOT EXISTS "{name}" {kind}'
    if table.timed:
        yield (
            f"SELECT create_hypertable('{where}', by_range('run_id', {RUNS_PER_CHUNK}::bigint), "
            "create_default_indexes => false, if_not_exists => true)"
        )
        order = ", ".join(f'"{name}"' for name in ("run_id", *table.key, table.order))
    else:
        order = ", ".join(f'"{name}"' for name in ("run_id", *table.key))
    yield f'CREATE INDEX IF NOT EXISTS "{table.stored}_run" ON {where} ({order})'
    if table.packed:
        yield f'DROP VIEW IF EXISTS {SCHEMA}."{table.name}"'
        yield packed.view(table.name, table.columns, SCHEMA)
