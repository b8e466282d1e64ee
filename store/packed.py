# SPDX-License-Identifier: Apache-2.0
"""Records with a row per packet or per sample, kept as arrays: up to ROWS rows of one flow or queue in one row of the database.

A column holds the differences of its values, as integers of four bytes, which PostgreSQL compresses; a view with the record's name
gives the rows back. Nothing is lost: where a difference does not fit, or the clock's start moves, another part begins.
A row by itself takes some 160 bytes with its index and header, in a part fewer than 25.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from store.copy_binary import integer, record, word
from store.errors import StoreUsageError

ROWS = 1 << 14
READ_ROWS = 1 << 18
"""So many rows are read at a time, and sorted by flow or queue."""
KEYS: Mapping[str, tuple[str, ...]] = {
    "acks": ("flow",),
    "sockets": ("flow",),
    "queues": ("node", "interface", "qdisc"),
}
"""The records that are packed, and what a part's rows have in common."""
PER_UNIT = 1000
"""Of columns of floating-point numbers (round-trip times in us) so many steps to the unit: captures tell nanoseconds."""
LARGEST_STEP = 2**31 - 2**13  # a float of 64 bits tells whole numbers of 2^63 apart by 2^10
LARGEST = 2**62

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]
Columns = Sequence[tuple[str, pa.DataType]]


def values(kind: str, columns: Columns) -> list[tuple[str, pa.DataType]]:
    """The columns that become arrays, without the time."""
    return [(name, of) for name, of in columns if name not in ("time_ns", "t_s", *KEYS[kind])]


def sql_columns(kind: str, columns: Columns) -> list[tuple[str, str]]:
    """(name, type) of the table of parts, after run_id."""
    key_columns = [(name, "text") for name in KEYS[kind]]
    key_columns += [("start_ns", "bigint"), ("rows", "integer"), ("t_ns_from", "bigint"), ("t_ns", "integer[]")]
    for name, _ in values(kind, columns):
        key_columns += [(f"{name}_from", "bigint"), (name, "integer[]")]
    return key_columns


def view(kind: str, columns: Columns, schema: str) -> str:
    """SQL of the view that gives the rows back. Sums run within a part, so that a condition on run_id or a key reads its parts only."""
    arrays = ["t_ns", *(name for name, _ in values(kind, columns))]
    sums = ", ".join(
        f'CASE WHEN u."{name}" IS NOT NULL THEN p."{name}_from" + sum(u."{name}") OVER part END AS "{name}"'
        for name in arrays
    )
    of = dict(columns)
    shown = []
    for name, _ in columns:
        if name == "time_ns":
            shown.append(
                "timestamptz 'epoch' + ((p.start_ns + v.t_ns)::bigint / 1000) * interval '1 microsecond' AS time"
            )
        elif name == "t_s":
            shown.append("v.t_ns::float8 / 1e9 AS t_s")
        elif name in KEYS[kind]:
            shown.append(f'p."{name}"')
        elif pa.types.is_boolean(of[name]):
            shown.append(f'v."{name}" <> 0 AS "{name}"')
        elif pa.types.is_floating(of[name]):
            shown.append(f'v."{name}"::float8 / {PER_UNIT} AS "{name}"')
        else:
            shown.append(f'v."{name}"::{"integer" if of[name] == pa.int32() else "bigint"} AS "{name}"')
    return f"""CREATE VIEW {schema}."{kind}" AS SELECT p.run_id, {", ".join(shown)}
        FROM {schema}."{kind}_packed" p CROSS JOIN LATERAL (
            SELECT {sums}
            FROM unnest({", ".join(f'p."{name}"' for name in arrays)}) WITH ORDINALITY
                AS u({", ".join(f'"{name}"' for name in arrays)}, place)
            WINDOW part AS (ORDER BY u.place ROWS UNBOUNDED PRECEDING)) v"""


def parts(kind: str, columns: Columns, run_id: int, rows: pa.Table) -> Iterator[tuple[int, bytes]]:
    """(rows, one row of binary COPY) for each part of some rows of a run; rows of one key stay in their order."""
    if not rows.num_rows:
        return
    numbers: dict[str, tuple[Integers, Mask]] = {"t_ns": _times(kind, rows["t_s"])}
    for name, _ in values(kind, columns):
        numbers[name] = _whole(f"{kind}.{name}", rows[name])
    starts = rows["time_ns"].to_numpy() - numbers["t_ns"][0]
    keys = [rows[name].combine_chunks().fill_null("").dictionary_encode() for name in KEYS[kind]]
    codes = np.zeros(rows.num_rows, dtype=np.int64)
    for key in keys:
        codes = codes * len(key.dictionary) + key.indices.to_numpy(zero_copy_only=False)
    order = np.argsort(codes, kind="stable")
    turns = np.flatnonzero(np.diff(codes[order])) + 1
    for group in np.split(order, turns):
        common = [word(rows[name][int(group[0])].as_py()) for name in KEYS[kind]]
        of_group = {name: (number[group], valid[group]) for name, (number, valid) in numbers.items()}
        for first, end in itertools.pairwise(_bounds(starts[group], of_group)):
            fields = [integer(run_id, 8), *common, integer(int(starts[group[first]]), 8), integer(end - first, 4)]
            for number, valid in of_group.values():
                fields += _array(number[first:end], valid[first:end])
            yield end - first, record(fields)


def _times(kind: str, column: pa.ChunkedArray) -> tuple[Integers, Mask]:
    """Nanoseconds since the run's start."""
    seconds = column.to_numpy()
    if column.null_count or not np.isfinite(seconds).all() or (np.abs(seconds) > LARGEST / 1e9).any():
        raise StoreUsageError(
            f"{kind}.t_s has values that are no time; `./warpbed collect RUN` makes the records again"
        )
    return np.rint(seconds * 1e9).astype(np.int64), np.ones(seconds.size, dtype=np.bool_)


def _whole(name: str, column: pa.ChunkedArray) -> tuple[Integers, Mask]:
    """A column as whole numbers, and which of them are there."""
    if pa.types.is_floating(column.type):
        floats = column.fill_null(np.nan).to_numpy() * PER_UNIT
        valid = np.isfinite(floats)
        if (np.abs(floats[valid]) > LARGEST).any():
            raise StoreUsageError(
                f"{name} has {np.abs(floats[valid]).max() / PER_UNIT:g}, at most {LARGEST // PER_UNIT} can be stored; "
                "`./warpbed collect RUN` makes the records again"
            )
        return np.rint(np.where(valid, floats, 0)).astype(np.int64), valid
    valid = np.asarray(column.is_valid().to_numpy(), dtype=np.bool_)
    return column.fill_null(False if pa.types.is_boolean(column.type) else 0).to_numpy().astype(np.int64), valid


def _bounds(starts: Integers, columns: Mapping[str, tuple[Integers, Mask]]) -> list[int]:
    """Where parts begin, and where the last one ends."""
    begins = {0, starts.size, *range(ROWS, starts.size, ROWS), *(np.flatnonzero(np.diff(starts)) + 1).tolist()}
    for number, valid in columns.values():
        places = np.flatnonzero(valid)
        steps = np.abs(np.diff(number[places].astype(np.float64)))
        begins.update(places[1:][steps > LARGEST_STEP].tolist())
    return sorted(begins)


def _array(number: Integers, valid: Mask) -> tuple[bytes, bytes]:
    """The first value and the differences as fields; a column without any value is null."""
    known = number[valid]
    if not known.size:
        return integer(None, 8), integer(None, 4)
    steps = np.zeros(number.size, dtype=np.int64)
    steps[valid] = np.diff(known, prepend=known[:1])
    return integer(int(known[0]), 8), _differences(steps, valid)


def _differences(steps: Integers, valid: Mask) -> bytes:
    """An array of integers of four bytes as a field of binary COPY (array_recv of PostgreSQL)."""
    cells = np.empty((steps.size, 8), dtype=np.uint8)
    cells[:, :4] = np.where(valid, 4, -1).astype(">i4").view(np.uint8).reshape(-1, 4)
    cells[:, 4:] = steps.astype(">i4").view(np.uint8).reshape(-1, 4)
    if valid.all():
        data = cells.tobytes()
    else:
        counted = np.ones(cells.shape, dtype=np.bool_)
        counted[:, 4:] = valid[:, None]
        data = cells[counted].tobytes()
    head = np.array([1, int(not valid.all()), INT4, steps.size, 1], dtype=">i4").tobytes()
    return (len(head) + len(data)).to_bytes(4, "big") + head + data


INT4 = 23
"""pg_type's number of integer."""
