# SPDX-License-Identifier: Apache-2.0
"""What this program prints: whatever it is, it holds nothing that a terminal takes for a command.

Text of strangers (titles, parameters, messages of other machines) is cleaned where it is put into a line, because only
there is it known what is theirs. This is the net below: all of standard output and standard error goes through it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from base.text import clean_lines

COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")
"""What sets a colour. Of a table only, whose cells were cleaned before they got theirs."""


class Screen:
    """A stream for text that cleans what is written to it, and otherwise is the stream that it was made from."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write("\t".join(map(clean_lines, text.split("\t"))))
        return len(text)

    def writelines(self, lines: Iterator[str]) -> None:
        for line in lines:
            self.write(line)

    def colour(self, table: str) -> None:
        """Write a table with its colours."""
        for index, part in enumerate(COLOUR.split(table)):
            self._stream.write(part if index % 2 else clean_lines(part))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def install() -> None:
    """From now on, standard output and standard error of this process are such streams."""
    sys.stdout, sys.stderr = _over(sys.stdout), _over(sys.stderr)


@contextmanager
def installed() -> Iterator[None]:
    """`install`, until the end of the block."""
    before = sys.stdout, sys.stderr
    install()
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def print_table(table: str) -> None:
    """Print what `analysis.terminal.table` made (or CSV, or JSON), which ends its own lines."""
    if isinstance(sys.stdout, Screen):
        sys.stdout.colour(table)
    else:
        sys.stdout.write(table)


def _over(stream: TextIO | None) -> TextIO:
    """stream: None where a process was started without one"""
    return cast(TextIO, stream if stream is None or isinstance(stream, Screen) else Screen(stream))
