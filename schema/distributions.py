# SPDX-License-Identifier: Apache-2.0
"""Random quantities as experiment files write them: 5s, exponential(5s), pareto(100s, 1.35), uniform(5KB, 100KB)."""

from __future__ import annotations

import re
from collections.abc import Callable

from base import quantities
from plan.draws import Distribution

_CALL = re.compile(r"([a-z]+)\s*\(([^()]*)\)")
FORMS = "a plain quantity, exponential(MEAN), pareto(MEAN, SHAPE) or uniform(FROM, TO)"
MAX_SHAPE = 100.0


def parse(text: str, quantity: Callable[[str], float]) -> Distribution:
    """The distribution of a text.

    quantity: what turns a text with a unit into a number, such as `quantities.seconds`. Raises ValueError.
    """
    match = _CALL.fullmatch(text.strip())
    if match is None:
        if "(" in text:
            raise ValueError(f"{text!r} is not a distribution; write {FORMS}")
        return Distribution("constant", quantity(text))
    kind, arguments = match[1], [part.strip() for part in match[2].split(",")]
    if kind == "exponential" and len(arguments) == 1:
        return Distribution(kind, _positive(quantity(arguments[0]), text))
    if kind == "pareto" and len(arguments) == 2:
        return Distribution(kind, _positive(quantity(arguments[0]), text), _shape(arguments[1], text))
    if kind == "uniform" and len(arguments) == 2:
        low, high = (quantity(part) for part in arguments)
        if high <= low:
            raise ValueError(f"{text!r}: {arguments[1]} is not above {arguments[0]}")
        return Distribution(kind, low, high)
    raise ValueError(f"{text!r} is not a distribution; write {FORMS}")


def times(text: str) -> Distribution:
    """Of seconds."""
    return parse(text, quantities.seconds)


def sizes(text: str) -> Distribution:
    """Of bytes."""
    return parse(text, quantities.size_bytes)


def _positive(value: float, text: str) -> float:
    if value <= 0:
        raise ValueError(f"{text!r}: the mean must be above 0")
    return value


def _shape(text: str, whole: str) -> float:
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text) is None or not 1 < float(text) <= MAX_SHAPE:
        raise ValueError(f"{whole!r}: the shape {text!r} must be a number above 1 (else there is no mean), at most 100")
    return float(text)
