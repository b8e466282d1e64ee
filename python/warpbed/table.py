# SPDX-License-Identifier: Apache-2.0
"""Rows with named columns, as Arrow, pandas or polars."""

from __future__ import annotations

import html
import importlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from base.errors import UsageError

if TYPE_CHECKING:
    import pandas
    import polars

SHOWN_ROWS = 20


@dataclass(frozen=True)
class Table:
    """Rows with named columns. `arrow` is the Arrow table; the others are made from it.

    A quantity's column has its unit in its name; what is unknown is null.
    """

    arrow: pa.Table

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> Table:
        """A table of dictionaries. Columns: those named, then all others in the order in which the rows have them.

        Values of a column that have no common type become text, lists and objects JSON.
        """
        names = list(dict.fromkeys([*columns, *(name for row in rows for name in row)]))
        return cls(pa.table({name: _column([row.get(name) for row in rows]) for name in names}))

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.arrow.column_names)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """All rows as dictionaries."""
        content: list[dict[str, Any]] = self.arrow.to_pylist()
        return content

    def __len__(self) -> int:
        return int(self.arrow.num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def pandas(self) -> pandas.DataFrame:
        """The rows as a pandas DataFrame. Raises UsageError where pandas is not installed."""
        extra("pandas")
        return self.arrow.to_pandas()

    def polars(self) -> polars.DataFrame:
        """The rows as a polars DataFrame. Raises UsageError where polars is not installed."""
        frame: polars.DataFrame = extra("polars").from_arrow(self.arrow)
        assert type(frame).__name__ == "DataFrame"  # a table gives a frame, an array would give a series
        return frame

    def _repr_html_(self) -> str:
        """The first rows, for notebooks."""
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_shown(value))}</td>" for value in row.values()) + "</tr>"
            for row in self.arrow.slice(0, SHOWN_ROWS).to_pylist()
        )
        more = f"<p>{len(self)} rows</p>" if len(self) > SHOWN_ROWS else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def extra(name: str) -> Any:
    """A module that only notebooks need. Raises UsageError with what to do where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(
            f"{name} is not installed ({error}); from a checkout: WARPBED_EXTRAS=notebooks ./warpbed exec python, "
            f"with pip: pip install 'warpbed[notebooks]' or pip install {name}"
        ) from error


def _column(values: Sequence[Any]) -> pa.Array:
    plain = [
        json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list | tuple) else value for value in values
    ]
    try:
        return pa.array(plain)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([None if value is None else str(value) for value in plain], pa.string())


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.5g}" if isinstance(value, float) else str(value)
