# SPDX-License-Identifier: Apache-2.0
"""What this program prints: whatever it is, it holds nothing that a terminal takes for a command.

Text of strangers (titles, parameters, messages of other machines) is cleaned where it is put into a line, because only
there is it known what is theirs. This is the net below: all of standard output and standard error goes through it.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from base.linux import libc
from base.text import clean_lines

COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")
"""What sets a colour. Of a table only, whose cells were cleaned before they got theirs."""


class Screen:
    """A stream for text that cleans what is written to it, and otherwise is the stream that it was made from.

    ends: the process ends as by SIGPIPE, without a word, where nobody reads the stream any more. It is asked for here, and the signal
    itself is left ignored as Python has it: a closed socket, or another program that ends before it has read, is an error like others.
    """

    def __init__(self, stream: TextIO, ends: bool) -> None:
        self._stream, self.ends = stream, ends

    def write(self, text: str) -> int:
        with self._read_by_somebody():
            self._stream.write("\t".join(map(clean_lines, text.split("\t"))))
        return len(text)

    def flush(self) -> None:
        with self._read_by_somebody():
            self._stream.flush()

    def writelines(self, lines: Iterator[str]) -> None:
        for line in lines:
            self.write(line)

    def colour(self, table: str) -> None:
        """Write a table with its colours."""
        with self._read_by_somebody():
            for index, part in enumerate(COLOUR.split(table)):
                self._stream.write(part if index % 2 else clean_lines(part))

    @contextmanager
    def _read_by_somebody(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            if self.ends:
                libc.signal(signal.SIGPIPE, None)  # from any thread; Python lets its main thread alone do this
                os.kill(os.getpid(), signal.SIGPIPE)
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def install() -> None:
    """From now on, standard output and standard error of this process are such streams, and it ends where nobody reads them."""
    _install(ends=True)


def _install(ends: bool) -> None:
    sys.stdout, sys.stderr = _over(sys.stdout, ends), _over(sys.stderr, ends)


@contextmanager
def installed() -> Iterator[None]:
    """Such streams until the end of the block; where nobody reads them, that is a BrokenPipeError."""
    before = sys.stdout, sys.stderr
    _install(ends=False)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


@contextmanager
def outlived() -> Iterator[None]:
    """In the block a stream that nobody reads any more is a BrokenPipeError, and not the end of the process."""
    screens = [stream for stream in (sys.stdout, sys.stderr) if isinstance(stream, Screen) and stream.ends]
    for one in screens:
        one.ends = False
    try:
        yield
    finally:
        for one in screens:
            one.ends = True


def print_table(table: str) -> None:
    """Print what `analysis.terminal.table` made (or CSV, or JSON), which ends its own lines."""
    if isinstance(sys.stdout, Screen):
        sys.stdout.colour(table)
    else:
        sys.stdout.write(table)


def _over(stream: TextIO | None, ends: bool) -> TextIO:
    """stream: None where a process was started without one"""
    return cast(TextIO, stream if stream is None or isinstance(stream, Screen) else Screen(stream, ends))
