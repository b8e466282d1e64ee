# SPDX-License-Identifier: Apache-2.0
"""Tables for a terminal: as wide as it is, in colour where it wants it, and nothing in them that moves its cursor."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from base.text import clean

GAP = 2
"""Blanks between two columns."""


@dataclass(frozen=True)
class Style:
    """How wide and whether in colour."""

    width: int
    colour: bool

    @classmethod
    def of_terminal(cls) -> Style:
        colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        return cls(shutil.get_terminal_size((100, 24)).columns, colour)


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    style: Style,
    *,
    numeric: Sequence[bool] = (),
    whole: Sequence[bool] = (),
    colours: Mapping[str, str] | None = None,
) -> str:
    """The rows below their header; cells that do not fit end in an ellipsis.

    numeric: columns that are aligned to the right
    whole: columns that keep their width while others can give way
    colours: of cells, by their text
    """
    # imported here: rich takes longer to load than most commands take
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    columns = [
        Column(
            justify="right" if index < len(numeric) and numeric[index] else "left",
            no_wrap=index < len(whole) and whole[index],
            overflow="ellipsis",
        )
        for index in range(len(header))
    ]
    grid = Table(*columns, box=None, show_header=False, pad_edge=False, padding=(0, GAP // 2))
    for row in (header, *rows):
        marked = colours if colours and row is not header else {}
        grid.add_row(
            *(Text(clean(cell), marked.get(cell, ""), no_wrap=True, overflow="ellipsis", end="") for cell in row)
        )
    out = io.StringIO()
    console = Console(
        file=out,
        width=style.width,
        force_terminal=style.colour,
        color_system="standard" if style.colour else None,
        legacy_windows=False,
        soft_wrap=False,
        _environ={},
    )
    console.print(grid)
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


def cut(text: str, width: int) -> str:
    text = clean(text)
    return text if len(text) <= width else text[: max(0, width - 1)] + "…"
