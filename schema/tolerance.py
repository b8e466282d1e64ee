# SPDX-License-Identifier: Apache-2.0
"""How far a number may lie from another: a share of it, such as "5%", or a number in the metric's unit."""

from __future__ import annotations

import math
from typing import Any

Tolerance = str | float


def absolute(tolerance: Tolerance, value: float) -> float | None:
    """The tolerance of a value in the value's unit, 0 or more; None where the text is neither a share nor a number."""
    if isinstance(tolerance, str):
        text = tolerance.strip()
        try:
            tolerance = abs(value) * float(text.removesuffix("%")) / 100 if text.endswith("%") else math.nan
        except ValueError:
            return None
    return tolerance if math.isfinite(tolerance) and tolerance >= 0 else None


def is_whole(value: Any) -> bool:
    """Whether a value of a file is a whole number, which stands for the same float (YAML's true is none)."""
    return isinstance(value, int) and not isinstance(value, bool)
