# SPDX-License-Identifier: Apache-2.0
"""Read the Parquet records of a run as numpy arrays, grouped by flow or by interface.

The only module of this package that touches Parquet. Files are read in batches, so that a capture of many
million packets needs the memory of what is kept of it, not of all its columns.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from analysis.arrays import np, pa, pc, pq, reading
from analysis.errors import RecordsError
from base.small_files import require_plain
from base.text import clean
from collectors.version import READ_VERSIONS

if TYPE_CHECKING:
    from numpy.typing import NDArray

SCHEMA_VERSIONS = tuple(map(str, READ_VERSIONS))

BATCH_ROWS = 1 << 18
MOST_KEPT = 30_000_000
"""Rows of a record that is kept in memory: 30 days of one flow's intervals, or a minute of 50 000 flows'."""
MOST_KEYS = 250_000
"""Flows, or interfaces; each is some kB as read here."""
MOST_ROWS: Mapping[str, int] = {"flows": MOST_KEYS, **dict.fromkeys(("acks", "sockets", "timeline"), 10 * MOST_KEPT)}
"""The latter have a row per ACK: an hour at 1 Gbit/s."""
LONGEST_NAME = 1000
"""Bytes of a text: names, addresses."""

Floats: TypeAlias = "NDArray[np.float64]"
Key = tuple[str, ...]
Columns = dict[str, Floats]


def grouped(path: Path, by: Sequence[str], columns: Sequence[str]) -> Iterator[tuple[Key, Columns]]:
    """Yield (key, columns) piece by piece in file order; a key comes back once per batch that holds rows of it.

    Numbers come as float64 with NaN for null. A file that is not there has no rows: a run that failed early
    leaves such folders, and what follows has to say "unknown" for them rather than stop.
    """
    if not path.exists():
        return
    with _open(path) as file:
        _require(path, reading.names(file.schema_arrow), [*by, *columns])
        for batch in reading.batches(file, BATCH_ROWS, [*by, *columns]):
            if batch.num_rows:
                _check_texts(path, batch)
                yield from _split(batch, by, columns)


def collect(path: Path, by: Sequence[str], columns: Sequence[str]) -> dict[Key, Columns]:
    """All rows of each key, in file order."""
    # arrays that grow in place: pieces to be joined in the end would take twice the memory
    grown: dict[Key, dict[str, array[float]]] = {}
    for key, part in grouped(path, by, columns):
        if key not in grown:
            if len(grown) == MOST_KEYS:
                raise RecordsError(f"{path}: more than {MOST_KEYS} {' and '.join(by)}s; {_again(path)}")
            grown[key] = {name: array("d") for name in columns}
        for name, values in part.items():
            grown[key][name].frombytes(values.tobytes())
    return {key: {name: np.frombuffer(values) for name, values in whole.items()} for key, whole in grown.items()}


def rows(path: Path) -> list[dict[str, Any]]:
    """Every row as a dictionary; for small tables (flows)."""
    return list(in_turn(path)) if path.exists() else []


def whole(path: Path, columns: Sequence[str] | None = None) -> Any:
    """A record as an Arrow table, with only these columns where some are named."""
    with _open(path) as file:
        if columns is not None:
            _require(path, reading.names(file.schema_arrow), columns)
        table = reading.table(file, columns)
        _check_texts(path, table)
        kinds = [
            field.with_type(pa.string()) if pa.types.is_dictionary(field.type) else field for field in table.schema
        ]
        return table.cast(pa.schema(kinds, table.schema.metadata))


def in_turn(path: Path) -> Iterator[dict[str, Any]]:
    """Every row as a dictionary, one after the other, for files of any size."""
    with _open(path) as file:
        for batch in reading.batches(file, BATCH_ROWS >> 4):
            _check_texts(path, batch)
            yield from batch.to_pylist()


def require_readable(path: Path) -> None:
    """Raise RecordsError where some row cannot be read."""
    with _open(path) as file:
        for _ in reading.batches(file, BATCH_ROWS):
            pass


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    """A record; whatever is wrong with its bytes, also while it is read, is a RecordsError.

    Texts come as dictionaries: a long one that is in every row would take its length times the rows.
    """
    try:
        require_plain(path)
        metadata = pq.read_metadata(path)
        texts = [column.path for column in map(metadata.schema.column, range(metadata.num_columns)) if is_text(column)]
        with pq.ParquetFile(path, metadata=metadata, read_dictionary=texts) as file:
            _check(path, file)
            yield file
    except (
        pa.ArrowException,
        OSError,
        UnicodeError,
    ) as error:  # ArrowException: also an encoding that Arrow does not know
        raise RecordsError(f"{path}: not a readable Parquet file ({_first_line(error)}); {_again(path)}") from error


def is_text(column: Any) -> bool:
    """Whether a column of a Parquet file holds texts."""
    return bool(column.physical_type == "BYTE_ARRAY" and column.max_repetition_level == 0)


def _first_line(error: BaseException) -> str:
    return clean(next(iter(str(error).strip().splitlines()), type(error).__name__))


def _again(path: Path) -> str:
    return f"./warpbed collect {path.parents[1]} makes it again"


def _check(path: Path, file: Any) -> None:
    most = MOST_ROWS.get(path.stem, MOST_KEPT)
    if file.metadata.num_rows > most:
        raise RecordsError(f"{path}: {file.metadata.num_rows} rows, at most {most} are read; {_again(path)}")
    metadata = file.schema_arrow.metadata or {}
    version = metadata.get(b"warpbed.schema", SCHEMA_VERSIONS[-1].encode()).decode(errors="replace")
    if version not in SCHEMA_VERSIONS:
        raise RecordsError(
            f"{path}: records of schema {version!r}, this Warpbed reads {' and '.join(SCHEMA_VERSIONS)}; "
            f"./warpbed collect {path.parents[1]} makes them again from raw/"
        )
    try:
        reading.start_ns(file.schema_arrow)
    except ValueError as error:
        raise RecordsError(f"{path}: the run's start in its metadata: {error}; {_again(path)}") from error


def _check_texts(path: Path, table: Any) -> None:
    for name, column in zip(table.schema.names, table.columns, strict=True):
        if pa.types.is_dictionary(column.type):
            chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
            if any((pc.max(pc.binary_length(chunk.dictionary)).as_py() or 0) > LONGEST_NAME for chunk in chunks):
                raise RecordsError(
                    f"{path}: column {clean(name)} has texts of more than {LONGEST_NAME} bytes; {_again(path)}"
                )


def _require(path: Path, present: Sequence[str], wanted: Sequence[str]) -> None:
    missing = [name for name in wanted if name not in present]
    if missing:
        raise RecordsError(f"{path}: no column {', '.join(missing)}; the file has {clean(', '.join(present))}")


def _split(batch: Any, by: Sequence[str], columns: Sequence[str]) -> Iterator[tuple[Key, Columns]]:
    numbers = {name: _floats(batch.column(name)) for name in columns}
    codes: NDArray[np.int64] = np.zeros(batch.num_rows, dtype=np.int64)
    names: list[list[str]] = []
    for name in by:
        column = batch.column(name)
        if not pa.types.is_dictionary(column.type):
            column = column.cast(pa.string()).dictionary_encode()
        labels = [str(label) for label in column.dictionary.to_pylist()]
        labels.append("")  # of rows that name none
        places = column.indices.fill_null(len(labels) - 1).to_numpy(zero_copy_only=False)
        codes = codes * len(labels) + places.astype(np.int64)
        names.append(labels)
    order = np.argsort(codes, kind="stable")
    for group in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
        key: list[str] = []
        rest = int(codes[group[0]])
        for labels in reversed(names):
            rest, index = divmod(rest, len(labels))
            key.append(labels[index])
        yield tuple(reversed(key)), {name: values[group] for name, values in numbers.items()}


def _floats(column: Any) -> Floats:
    values: Floats = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return values
