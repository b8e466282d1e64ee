# SPDX-License-Identifier: Apache-2.0
"""Read the Parquet records of a run as numpy arrays, grouped by flow or by interface.

The only module of this package that touches Parquet. Files are read in batches, so that a capture of many
million packets needs the memory of what is kept of it, not of all its columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from analysis.arrays import np, pa, pc, pq, reading
from analysis.errors import RecordsError
from collectors.version import READ_VERSIONS

if TYPE_CHECKING:
    from numpy.typing import NDArray

SCHEMA_VERSIONS = tuple(map(str, READ_VERSIONS))

BATCH_ROWS = 1 << 18

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
                yield from _split(batch, by, columns)


def collect(path: Path, by: Sequence[str], columns: Sequence[str]) -> dict[Key, Columns]:
    """All rows of each key, in file order."""
    pieces: dict[Key, list[Columns]] = {}
    for key, part in grouped(path, by, columns):
        pieces.setdefault(key, []).append(part)
    return {
        key: {name: np.concatenate([part[name] for part in parts]) for name in columns} for key, parts in pieces.items()
    }


def rows(path: Path) -> list[dict[str, Any]]:
    """Every row as a dictionary; for small tables (flows)."""
    if not path.exists():
        return []
    with _open(path) as file:
        content: list[dict[str, Any]] = file.read().to_pylist()
    return content


def whole(path: Path, columns: Sequence[str] | None = None) -> Any:
    """A record as an Arrow table, with only these columns where some are named."""
    with _open(path) as file:
        if columns is not None:
            _require(path, reading.names(file.schema_arrow), columns)
        return reading.table(file, columns)


def in_turn(path: Path) -> Iterator[dict[str, Any]]:
    """Every row as a dictionary, one after the other, for files of any size."""
    with _open(path) as file:
        for batch in reading.batches(file, BATCH_ROWS >> 4):
            yield from batch.to_pylist()


def _open(path: Path) -> Any:
    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise RecordsError(
            f"{path}: not a readable Parquet file ({error}); ./warpbed collect {path.parents[1]} makes it again"
        ) from error
    metadata = file.schema_arrow.metadata or {}
    version = metadata.get(b"warpbed.schema", SCHEMA_VERSIONS[-1].encode()).decode(errors="replace")
    if version not in SCHEMA_VERSIONS:
        file.close()
        raise RecordsError(
            f"{path}: records of schema {version!r}, this Warpbed reads {' and '.join(SCHEMA_VERSIONS)}; "
            f"./warpbed collect {path.parents[1]} makes them again from raw/"
        )
    try:
        reading.start_ns(file.schema_arrow)
    except ValueError as error:
        file.close()
        raise RecordsError(
            f"{path}: the run's start in its metadata: {error}; ./warpbed collect {path.parents[1]} makes it again"
        ) from error
    return file


def _require(path: Path, present: Sequence[str], wanted: Sequence[str]) -> None:
    missing = [name for name in wanted if name not in present]
    if missing:
        raise RecordsError(f"{path}: no column {', '.join(missing)}; the file has {', '.join(present)}")


def _split(batch: Any, by: Sequence[str], columns: Sequence[str]) -> Iterator[tuple[Key, Columns]]:
    numbers = {name: _floats(batch.column(name)) for name in columns}
    codes: NDArray[np.int64] = np.zeros(batch.num_rows, dtype=np.int64)
    names: list[list[str]] = []
    for name in by:
        column = batch.column(name)
        if not pa.types.is_dictionary(column.type):
            column = pc.fill_null(column.cast(pa.string()), "").dictionary_encode()
        labels = [str(label) for label in column.dictionary.to_pylist()]
        codes = codes * max(1, len(labels)) + column.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        names.append(labels)
    for code in np.unique(codes):
        key: list[str] = []
        rest = int(code)
        for labels in reversed(names):
            rest, index = divmod(rest, max(1, len(labels)))
            key.append(labels[index])
        mask = codes == code
        yield tuple(reversed(key)), {name: values[mask] for name, values in numbers.items()}


def _floats(column: Any) -> Floats:
    values: Floats = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return values
