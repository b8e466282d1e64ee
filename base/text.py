# SPDX-License-Identifier: Apache-2.0
"""Text from files and programs, made safe for where it is shown."""

from __future__ import annotations

import json
import unicodedata

INSTEAD = "�"
"""Stands where a character was that is not shown."""
FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
"""What a spreadsheet takes for the beginning of a formula; some take the wide forms, too."""


def clean(text: str) -> str:
    """In one line, without control characters: a title must neither move the terminal's cursor nor turn its text around.

    Control characters (C0, DEL, C1), directions of writing and other invisible ones, ends of lines, half characters.
    """
    if text.isprintable():  # nearly all text is, and this is fast
        return text
    return "".join(character if _is_shown(character) else INSTEAD for character in text)


def clean_lines(text: str) -> str:
    """`clean`, but for the ends of lines: messages of several lines hold words of files and of other machines, too."""
    return "\n".join(clean(line) for line in text.split("\n"))


def safe(text: str) -> str:
    """`clean`, for a cell of a CSV file: a spreadsheet must not take a name for a formula."""
    text = f"'{text}" if text.lstrip().startswith(FORMULA) else text
    return clean(text)


def json_text(value: object, indent: int | None = 1) -> str:
    """JSON that can be looked at in a terminal: its strings hold what `clean` takes away in JSON's own escapes, so nothing is lost.

    What JSON does not know becomes its text.
    """
    text = json.dumps(value, indent=indent, ensure_ascii=False, default=str)
    return "\n".join(line if line.isprintable() else _escaped(line) for line in text.split("\n"))


def _escaped(line: str) -> str:
    return "".join(character if _is_shown(character) else json.dumps(character)[1:-1] for character in line)


def _is_shown(character: str) -> bool:
    """Spaces that break no line are shown, which Python does not count as printable."""
    return character.isprintable() or unicodedata.category(character) == "Zs"
