# SPDX-License-Identifier: Apache-2.0
"""Text from files and programs, made safe for where it is shown."""

from __future__ import annotations


def clean(text: str) -> str:
    """Without control characters: a title must not move the terminal's cursor."""
    return "".join(character if character.isprintable() else "�" for character in text)


def clean_lines(text: str) -> str:
    """`clean`, but for the ends of lines: messages of several lines hold words of files and of other machines, too."""
    return "\n".join(clean(line) for line in text.split("\n"))


def safe(text: str) -> str:
    """A spreadsheet must not take a name for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r", "\n") else text
