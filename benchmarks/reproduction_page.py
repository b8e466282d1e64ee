# SPDX-License-Identifier: Apache-2.0
"""Tables of other simulators' numbers: printed, and put into their places in docs/reproduction.md."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from base.files import replace_text
from base.paths import ROOT

PAGE = ROOT / "docs/reproduction.md"


def mark(name: str) -> re.Pattern[str]:
    """Where a table is in the page."""
    return re.compile(rf"(<!-- measured: {name} -->\n).*?(<!-- end -->)", re.DOTALL)


def put(page: str, name: str, lines: Sequence[str]) -> str:
    """The page with these lines as a table."""
    return mark(name).sub(lambda match: f"{match[1]}{chr(10).join(lines)}\n{match[2]}", page)


def show(name: str, lines: Iterable[str], *, is_written: bool) -> None:
    """Print a table's lines as they come; is_written: put them into the page, too."""
    table = []
    for line in lines:
        print(line, flush=True)
        table.append(line)
    if is_written:
        replace_text(PAGE, put(PAGE.read_text(), name, table))
