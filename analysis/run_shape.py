# SPDX-License-Identifier: Apache-2.0
"""Whether a run.json has the shape that this program writes, so that one damaged or made-up folder is one unreadable run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

MAX_DEPTH = 40
LARGEST = 2**64
LONGEST_TEXT = 1 << 20
LONGEST_NUMBER = 64
"""Characters of a text that would be taken for a quantity."""

SHAPES: Mapping[tuple[str, ...], type | tuple[type, ...]] = {
    ("seed",): int,
    ("params",): dict,
    ("verdict",): dict,
    ("verdict", "reasons"): list,
    ("verdict", "reasons", "*"): dict,
    ("metrics",): dict,
    ("metrics", "flows"): list,
    ("metrics", "flows", "*"): dict,
    ("spec",): dict,
    ("spec", "flows"): list,
    ("spec", "flows", "*"): dict,
    ("spec", "claims"): list,
    ("spec", "guards"): list,
    ("spec", "expectations"): list,
    ("spec", "published"): list,
    ("spec", "published", "*"): dict,
    ("inputs",): dict,
    ("packets",): str,
    ("sources",): dict,
    ("sources", "*"): dict,
    ("environment",): dict,
    ("timing",): dict,
    ("timing", "virtual_s"): (int, float),
    ("timing", "wall_s"): (int, float),
    ("params", "*"): (str, int, float, bool),
}
"""Place → what stands there; `*` is each part of a list or mapping. What is absent is always allowed, and so is None, but for a part
that is a mapping."""


def problem(data: Mapping[str, Any]) -> str | None:
    """What is wrong with a run's document, or None."""
    try:
        for value in _values(data, 0):
            if (wrong := _wrong(value)) is not None:
                return wrong
    except RecursionError:
        return f"more than {MAX_DEPTH} levels"
    for place, kind in SHAPES.items():
        for value in _at(data, place):
            wrong_bool = isinstance(value, bool) and kind is int
            may_be_none = value is None and (place[-1] != "*" or kind is not dict)
            if not may_be_none and (not isinstance(value, kind) or wrong_bool):
                return f"{'.'.join(place)} holds {type(value).__name__}"
    return None


def without_constants(_: str) -> None:
    """NaN and Infinity are no JSON, and no value that was measured."""


def _values(value: Any, depth: int) -> Iterator[Any]:
    if depth > MAX_DEPTH:
        raise RecursionError
    yield value
    if isinstance(value, dict):
        for key, part in value.items():
            yield key
            yield from _values(part, depth + 1)
    elif isinstance(value, list):
        for part in value:
            yield from _values(part, depth + 1)


def _wrong(value: Any) -> str | None:
    if isinstance(value, int) and abs(value) > LARGEST:
        return "a whole number of more than 64 bits"
    if isinstance(value, float) and not math.isfinite(value):
        return "a number that is not finite"
    if isinstance(value, str):
        if len(value) > LONGEST_TEXT:
            return f"a text of {len(value)} characters"
        if len(value) > LONGEST_NUMBER and value.isdigit():
            return f"a number of {len(value)} digits"
        if any("\ud800" <= character <= "\udfff" for character in value):
            return "a text that is not Unicode"
    return None


def _at(value: Any, place: tuple[str, ...]) -> Iterator[Any]:
    if not place:
        yield value
        return
    head, rest = place[0], place[1:]
    if head == "*":
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        for part in parts:
            yield from _at(part, rest)
    elif isinstance(value, dict) and head in value:
        yield from _at(value[head], rest)
