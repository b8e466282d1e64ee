# SPDX-License-Identifier: Apache-2.0
"""Lines that hold for some kernel series only, as in patches/series and configs/um.required."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from base.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

CONDITION = re.compile(r"(>=|<)(\d+(?:\.\d+)*)")


@dataclass(frozen=True)
class Line:
    """One line: what it is about, and where it stands."""

    word: str
    number: int


def version(text: str) -> tuple[int, ...]:
    """A series as numbers, since 6.12 is later than 6.2."""
    return tuple(int(part) for part in text.split("."))


def lines_for(path: Path, series: str) -> list[Line]:
    """The first words of those lines of `path` whose conditions all hold for `series`, in order."""
    chosen = []
    for number, text in enumerate(path.read_text().splitlines(), start=1):
        # A quoted value may hold blanks or a #, a condition may not.
        match = re.match(r'((?:"[^"]*"|[^\s#"])+)\s*(.*)', text.strip())
        if not match or text.lstrip().startswith("#"):
            continue
        conditions = match[2].partition("#")[0].split()
        if all(_holds(condition, series, f"{path}:{number}") for condition in conditions):
            chosen.append(Line(match[1], number))
    return chosen


def _holds(condition: str, series: str, place: str) -> bool:
    match = CONDITION.fullmatch(condition)
    if not match:
        raise UsageError(f"{place}: condition {condition!r} is not >= or < and a version, such as >=6.12")
    return version(series) >= version(match[2]) if match[1] == ">=" else version(series) < version(match[2])
