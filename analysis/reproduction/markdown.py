# SPDX-License-Identifier: Apache-2.0
"""Texts of results as Markdown that shows them as they are."""

from __future__ import annotations

from base.text import clean


def text(plain: str) -> str:
    return clean(plain).replace("<", "&lt;")


def cell(plain: str) -> str:
    """In a table."""
    return text(plain).replace("|", "\\|").replace("\n", " ")


def short(plain: str, most: int = 300) -> str:
    return plain if len(plain) <= most else plain[: most - 1].rsplit(" ", 1)[0] + " …"


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
