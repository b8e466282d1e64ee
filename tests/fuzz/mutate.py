# SPDX-License-Identifier: Apache-2.0
"""Change a good file at random: its bytes, its lines, its values, or, where it is JSON, its tree."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Sequence
from typing import Any

WORDS = (
    "0", "-1", "1", "1e400", "-0.0", "nan", "inf", "9" * 40, "0x" + "f" * 40, "null", "true", "''", '""', "[]", "{}",
    "[[]]", "{a: b}",
    "~", "*a", "&a b", "!!python/object:os.system x", "../../x", "/etc/passwd", "x" * 300, '"\\e[2J"', '"\\uD800"',
    '"{{ 7*7 }}"', "=2+2",
    "1s", "0s", "99999999h", "1e9mbit", "0mbit", "1p", "5%", "200%", "2026-11-22", "1:2:3", "a b", "a/b", "a.b",
    "${x}", "- x",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, 10**30, -(10**400), float("nan"), float("inf"), "", "x" * 300, "\x1b[2J", "\ud800", "=2+2",
    "<script>",
    "../../x", [], {}, [[]], [None], {"": None}, ["a"] * 50, {"a": {"b": {"c": 1}}},
)  # fmt: skip
SCALAR = re.compile(rb"(?<=[:\-,\[{] )[^\n,\]}]+")


def changed(data: bytes, others: Sequence[bytes], draw: random.Random) -> bytes:
    """One to four changes, of kinds that fit the file."""
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        data = draw.choice((_tree, _tree, _scalar, _scalar, _line, _bytes))(data, others, draw)
    return data


def _scalar(data: bytes, others: Sequence[bytes], draw: random.Random) -> bytes:
    """A value of YAML becomes another one."""
    places = list(SCALAR.finditer(data))
    if not places:
        return _bytes(data, others, draw)
    place = draw.choice(places)
    return data[: place.start()] + draw.choice(WORDS).encode() + data[place.end() :]


def _line(data: bytes, others: Sequence[bytes], draw: random.Random) -> bytes:
    """A line goes, comes twice, is indented, or one of another file comes in."""
    lines = data.split(b"\n")
    place = draw.randrange(len(lines))
    what = draw.randrange(4)
    if what == 0:
        del lines[place]
    elif what == 1:
        lines.insert(draw.randrange(len(lines)), lines[place])
    elif what == 2:
        lines[place] = b" " * draw.randrange(1, 5) + lines[place]
    else:
        lines.insert(place, draw.choice(draw.choice(others).split(b"\n")))
    return b"\n".join(lines)


def _bytes(data: bytes, _others: Sequence[bytes], draw: random.Random) -> bytes:
    """Some bytes change, go or come, or the file ends early."""
    place = draw.randrange(len(data) + 1)
    length = draw.choice((1, 1, 2, 8, 64))
    what = draw.randrange(4)
    if what == 0:
        return data[:place] + draw.randbytes(length) + data[place + length :]
    if what == 1:
        return data[:place] + data[place + length :]
    if what == 2:
        return data[:place] + data[place : place + length] * draw.choice((2, 3, 100)) + data[place + length :]
    return data[:place]


def _tree(data: bytes, others: Sequence[bytes], draw: random.Random) -> bytes:
    """A node of a JSON document becomes something else, goes, or gets a sibling."""
    try:
        return _grafted(data, others, draw)
    except (ValueError, RecursionError):  # of guided fuzzing, data may be what was changed before
        return _scalar(data, others, draw)


def _grafted(data: bytes, others: Sequence[bytes], draw: random.Random) -> bytes:
    document = json.loads(data)
    places = list(_places(document))
    if not places:
        return _bytes(data, others, draw)
    parent, key = draw.choice(places)
    what = draw.randrange(4)
    if what == 0:
        del parent[key]
    elif what == 1 and isinstance(parent, dict):
        parent[draw.choice(("x", "\x1b[2J", "", *map(str, parent)))] = copy.deepcopy(parent[key])
    else:
        value = copy.deepcopy(draw.choice(VALUES))
        parent[key] = str(parent[key]) if what == 2 else value
    return json.dumps(document).encode("utf-8", "surrogatepass")


def _places(node: Any) -> Any:
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in list(items):
        yield node, key
        yield from _places(child)
