# SPDX-License-Identifier: Apache-2.0
"""Whether a number that stands under a thesis' name is one that the thesis prints, by the catalogue.

A value or bound has to be a number of the entry, or one in the words of its claims, but for a power of ten (units, percent); 0 and 1 are
"none" and "all". An interval that a claim asks for has to hold such a number: its width is ours.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from schema.catalogue import Entry, numbers_in
from schema.claims import Bounds, Claim, Difference, Greater, Near, Ratio
from schema.published import Published

_NUMBER = re.compile(r"(?<![\w.])(\d+(?:[ \u202f]\d{3})*(?:\.\d+)?(?:e-?\d+)?)(?:/(\d+))?")
POWERS = range(-6, 7)


def printed(entry: Entry) -> set[float]:
    """Every number of an entry: of its published data, of texts in them (1/9, "3 to 5, up to"), and of its claims."""
    texts = [*_texts(entry.published.numbers), *entry.published.claims]
    known_numbers = set(numbers_in(entry.published.numbers))
    for text in texts:
        for match in _NUMBER.finditer(text):
            value = float(re.sub(r"[ \u202f]", "", match.group(1)))
            known_numbers.add(value)
            if match.group(2):
                known_numbers.add(value / float(match.group(2)))
    return known_numbers


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
    elif isinstance(value, str):
        yield value


def is_printed(value: float, entry: Entry) -> bool:
    if value in (0, 1):
        return True
    return any(
        math.isclose(value, number * 10.0**power, rel_tol=1e-3)
        for number in printed(entry)
        for power in POWERS
        if number
    )


def _within(low: float, high: float, entry: Entry) -> bool:
    """An interval holds a printed number, or what leaves two things alike."""
    known = [number * 10.0**power for number in printed(entry) for power in (-2, 0)]
    return any(low * (1 - 1e-3) <= value <= high * (1 + 1e-3) for value in (0.0, 1.0, *known))


def strange(one: Claim | Published, entry: Entry) -> Iterator[str]:
    """What of a claim or a table is not printed, in words."""
    if isinstance(one, Published):
        for row in one.values:
            if row.value is not None and not is_printed(row.value, entry):
                yield f"{row.value:g} is not printed in {entry.id}"
        return
    relation = one.relation
    if isinstance(relation, Near) and not is_printed(relation.value, entry):
        yield f"{relation.value:g} is not printed in {entry.id}"
    if isinstance(relation, Bounds):
        for bound in (relation.min, relation.max):
            if bound is not None and not is_printed(bound, entry):
                yield f"the bound {bound:g} is not printed in {entry.id}"
    if isinstance(relation, Ratio | Difference) and not _within(relation.within[0], relation.within[1], entry):
        yield f"no number printed in {entry.id} lies within {relation.within[0]:g} … {relation.within[1]:g}"
    if isinstance(relation, Greater):
        by = float(relation.by.removesuffix("%")) if isinstance(relation.by, str) else relation.by
        if by and not is_printed(by, entry):
            yield f"`by: {relation.by}` is not printed in {entry.id}"
