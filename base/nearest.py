# SPDX-License-Identifier: Apache-2.0
"""The nearest name to one that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, allowed: Iterable[str]) -> str:
    """A sentence on what is allowed, with the nearest name first where one is near."""
    names = sorted(allowed)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"{hint}allowed: {', '.join(names) or 'none'}"
