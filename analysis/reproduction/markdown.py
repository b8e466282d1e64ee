# SPDX-License-Identifier: Apache-2.0
"""Texts of results as Markdown that shows them as they are."""

from __future__ import annotations

import re
from collections.abc import Iterable

from base.text import clean

NUMBER = re.compile(r"\d[\d.]*")


def text(plain: str) -> str:
    return clean(plain).replace("<", "&lt;")


def cell(plain: str) -> str:
    """In a table."""
    return text(plain).replace("|", "\\|").replace("\n", " ")


def short(plain: str, most: int = 300) -> str:
    return plain if len(plain) <= most else plain[: most - 1].rsplit(" ", 1)[0] + " …"


def few(sentences: Iterable[str], most: int = 3) -> str:
    """Of sentences that differ in numbers alone the first, and how many are like it; of kinds that many, and how many more there are."""
    kinds: dict[str, list[str]] = {}
    for sentence in dict.fromkeys(sentences):
        kinds.setdefault(NUMBER.sub("#", sentence), []).append(sentence)
    shown = [
        f"{first} ({len(others)} more with other numbers)" if others else first for first, *others in kinds.values()
    ]
    if len(shown) > most:
        shown[most:] = [f"{len(shown) - most} more"]
    return "; ".join(shown)


def anchor(name: str) -> str:
    """As the sites that render Markdown name a heading."""
    return "".join(c for c in name.lower() if c.isalnum() or c in "-_")


def file_link(name: str) -> str:
    """A file of the checkout, from a page in docs/reproduction."""
    return f"[{name.rpartition('/')[2]}](../../{name})"


def entry_link(name: str, *, part: str = "") -> str:
    """An entry of a thesis, from a page in docs/reproduction."""
    shown = f"{name}/{part}" if part else name
    return f"[{shown}]({name.partition('-')[0]}.md#{anchor(name)})"
