# SPDX-License-Identifier: Apache-2.0
"""Records as they are read: the seconds since the run's start are computed where a file leaves them out.

Files with a row per ACK hold `time_ns` and, in their metadata, the run's start; `t_s` is then (time_ns - start) / 1e9, the number that
would stand there, to the bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

TIME, SECONDS = "time_ns", "t_s"
START = b"warpbed.start_ns"
"""Key of the metadata: the run's start in nanoseconds since 1970."""


def start_ns(schema: pa.Schema) -> int | None:
    """The run's start that a file's `t_s` is computed with; None where the column is there, or nothing says it.

    Raises ValueError where the metadata holds no number of 64 bits.
    """
    text = (schema.metadata or {}).get(START)
    if text is None or SECONDS in schema.names or TIME not in schema.names or schema.field(TIME).type != pa.int64():
        return None
    start = int(text.decode("ascii", errors="replace"))
    if not -(2**63) <= start < 2**63:
        raise ValueError(f"{start} is no time")
    return start


def names(schema: pa.Schema) -> list[str]:
    """The columns that reading gives, in their order."""
    columns = list(schema.names)
    if start_ns(schema) is not None:
        columns.insert(columns.index(TIME) + 1, SECONDS)
    return columns


def batches(file: pq.ParquetFile, rows: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """The rows piece by piece, at most `rows` at once; columns: only these."""
    schema = file.schema_arrow
    start = start_ns(schema)
    wanted = names(schema) if columns is None else [name for name in names(schema) if name in columns]
    stored = wanted
    if start is not None and SECONDS in wanted:
        stored = [name for name in schema.names if name in wanted or name == TIME]
    for batch in file.iter_batches(batch_size=rows, columns=stored):
        arrays = [batch.column(name) if name in stored else _seconds(batch.column(TIME), start) for name in wanted]
        yield pa.RecordBatch.from_arrays(arrays, schema=_schema(schema, wanted))


def table(file: Path | pq.ParquetFile, columns: Sequence[str] | None = None) -> pa.Table:
    """All rows; columns: only these."""
    opened = file if isinstance(file, pq.ParquetFile) else pq.ParquetFile(file)
    pieces = list(batches(opened, 1 << 20, columns))
    schema = opened.schema_arrow
    wanted = names(schema) if columns is None else [name for name in names(schema) if name in columns]
    return pa.Table.from_batches(pieces, schema=_schema(schema, wanted))


def left_out(table: pa.Table) -> int | None:
    """The start with which a table's `t_s` can be computed from its `time_ns`, every bit of every row; None where there is none."""
    if not table.num_rows or table[TIME].null_count or table[SECONDS].null_count:
        return None
    times, seconds = table[TIME].to_numpy(), table[SECONDS].to_numpy()
    if not np.isfinite(seconds[0]) or abs(seconds[0]) > 2**53 / 1e9:
        return None
    start = int(times[0]) - round(float(seconds[0]) * 1e9)
    return start if np.array_equal((times - start) / 1e9, seconds) else None


def _seconds(times: pa.Array, start: int | None) -> pa.Array:
    assert start is not None
    values: Any = times.to_numpy(zero_copy_only=False)
    return pa.array((values - start) / 1e9, pa.float64())


def _schema(schema: pa.Schema, wanted: Sequence[str]) -> pa.Schema:
    fields = [schema.field(name) if name in schema.names else pa.field(SECONDS, pa.float64()) for name in wanted]
    kept = {key: value for key, value in (schema.metadata or {}).items() if key != START}
    return pa.schema(fields, metadata=kept or None)
