# SPDX-License-Identifier: Apache-2.0
"""Rows of a command's answer as a table for a terminal, as JSON, or as CSV."""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from analysis import table, terminal
from analysis.results import Run, show
from analysis.terminal import Style
from base.text import json_text, safe

FORMATS = ("table", "json", "csv")
COLOURS = {
    "agrees": "green", "holds": "green", "disagrees": "red", "does not hold": "red", "not comparable": "yellow",
    "error": "red", "warning": "yellow", "ok": "green", "off": "red", "not calibrated": "yellow",
}  # fmt: skip
"""Of words that judge; the words stand there as well, so nothing depends on the colour."""


def add_format(command: argparse.ArgumentParser) -> None:
    command.add_argument("--format", choices=FORMATS, default="table", help="how to print (default: table)")


def of_runs(runs: Sequence[Run], kind: str) -> str:
    """The runs' metrics; ends with a line break."""
    if kind == "table":
        return table.render(runs, Style.of_terminal())
    text = table.as_json(runs) if kind == "json" else table.as_csv(runs)
    return text if text.endswith("\n") else text + "\n"


@contextlib.contextmanager
def spoken_aside(kind: str) -> Iterator[None]:
    """Progress goes to stderr when stdout carries JSON or CSV."""
    with contextlib.nullcontext() if kind == "table" else contextlib.redirect_stdout(sys.stderr):
        yield


def render(rows: Sequence[Mapping[str, Any]], kind: str, style: Style | None = None) -> str:
    """All rows with the keys of the first one as columns; empty for no rows, but `[]` in JSON."""
    if kind == "json":
        return json_text(list(rows)) + "\n"
    if not rows:
        return ""
    if kind == "csv":
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(rows[0])
        writer.writerows(
            [safe(_text(value)) if isinstance(value, str | Mapping) else value for value in row.values()]
            for row in rows
        )
        return out.getvalue()
    return _table(rows, style or Style.of_terminal())


def _table(rows: Sequence[Mapping[str, Any]], style: Style) -> str:
    header = list(rows[0])
    lines = [[_text(row[name]) for name in header] for row in rows]
    numeric = [all(_is_number(row[name]) for row in rows) for name in header]
    return terminal.table(header, lines, style, numeric=numeric, whole=numeric, colours=COLOURS)


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _text(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={show(part)}" for name, part in value.items())
    if isinstance(value, float):
        return f"{value:.4g}"
    return ", ".join(show(part) for part in value) if isinstance(value, list | tuple) else show(value)
