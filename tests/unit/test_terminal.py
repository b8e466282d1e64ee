# SPDX-License-Identifier: Apache-2.0
"""Tables and progress on a terminal."""

from __future__ import annotations

import contextlib
import io
import os
import pty
import re
from pathlib import Path

import pytest

from analysis.terminal import Style, table
from testbed.campaign.table import ALL
from testbed.progress import Progress


def test_columns_stand_two_blanks_apart_and_numbers_end_in_one_line() -> None:
    rows = [["reno", "9.5"], ["westwood", "10.25"]]
    assert table(["cca", "rate"], rows, Style(80, False), numeric=[False, True]) == (
        "cca        rate\nreno        9.5\nwestwood  10.25\n"
    )


@pytest.mark.parametrize("width", [12, 20, 40])
def test_long_texts_give_way_to_columns_that_stay_whole(width: int) -> None:
    text = table(["name", "value"], [["x" * 60, "12345"]], Style(width, False), whole=[False, True])
    assert max(map(len, text.splitlines())) <= width
    assert text.splitlines()[1].endswith("…  12345")


def test_no_cell_is_markup_and_none_moves_the_cursor() -> None:
    text = table(["a"], [["[red]x[/red]"], ["\033[2Jy"], ["\x9b1mz"], ["two\nlines"], [":smile:"]], Style(80, True))
    assert text.splitlines()[1] == "[red]x[/red]" and ":smile:" in text
    assert "\033[2J" not in text and "\x9b" not in text and len(text.splitlines()) == 6


def test_a_wide_table_is_whole_where_no_terminal_bounds_it() -> None:
    assert len(table(["a", "b"], [["x" * 500, "y" * 500]], ALL).splitlines()[1]) == 1002


def everything(terminal: int) -> str:
    """What was written to the other end of a terminal, which is closed."""
    parts = []
    with contextlib.suppress(OSError):  # EIO: the other end is closed and all is read
        while part := os.read(terminal, 1 << 16):
            parts.append(part)
    os.close(terminal)
    return b"".join(parts).decode()


def test_progress_writes_lines_and_draws_its_bar_on_the_terminal_only() -> None:
    ours, theirs = pty.openpty()
    lines = io.StringIO()
    progress = Progress(2, 20.0, lines, os.ttyname(theirs))
    progress.event({"event": "started", "run": "one"})
    progress.event({"event": "done", "run": "one", "of_s": 10.0, "wall_s": 1.0, "speed": 10.0})
    progress.event({"event": "failed", "run": "two", "of_s": 10.0, "message": "no \033[2Jguest"})
    progress.close()
    os.close(theirs)
    drawn = everything(ours)
    assert lines.getvalue().splitlines() == [
        "[1/2] one: 10 s of virtual time in 1.0 s (10.0 times real time)",
        "[2/2] two: failed: no \N{REPLACEMENT CHARACTER}[2Jguest",
    ]
    assert "1/2 runs, 10 of 20 virtual s" in drawn and "2/2 runs" in drawn
    assert drawn.rstrip().endswith("\033[2K"), "the bar is taken away at the end"
    assert drawn.count("\033[?25l") == drawn.count("\033[?25h"), "the cursor is shown again"
    assert not re.search(r"\d/2 runs", lines.getvalue())


def test_progress_without_a_terminal_only_writes_lines(tmp_path: Path) -> None:
    lines = io.StringIO()
    for terminal in (None, str(tmp_path / "none/tty")):
        progress = Progress(1, 5.0, lines, terminal)
        progress.event({"event": "progress", "run": "one", "virtual_s": 2.0})
        progress.close()
    assert lines.getvalue() == ""
