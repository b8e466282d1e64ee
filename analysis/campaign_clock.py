# SPDX-License-Identifier: Apache-2.0
"""Where each transfer lies on the clock of a campaign in virtual time.

    results/<campaign>/.campaign/clock.json   run id → seconds since the campaign's beginning

The transfers' own clocks do not say it: each is a guest of its own, and all of them begin at the same instant.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from base.files import replace_text
from base.small_files import small_json

FILE = ".campaign/clock.json"
MOST_S = 100 * 365 * 86_400.0


def write(results: Path, starts_s: Mapping[str, float]) -> None:
    """Record the starts of a campaign's transfers below its results, in place of what was there."""
    file = results / FILE
    file.parent.mkdir(parents=True, exist_ok=True)
    replace_text(file, json.dumps({run: round(start, 3) for run, start in starts_s.items()}, indent=0) + "\n")


def read(results: Path) -> dict[str, float]:
    """Starts of a campaign's transfers; nothing where the results are no such campaign's, or the file is not readable."""
    try:
        content: Any = small_json(results / FILE)
    except (OSError, ValueError):
        return {}
    if not isinstance(content, dict):
        return {}
    return {run: float(start) for run, start in content.items() if _is_time(start)}


def _is_time(start: Any) -> bool:
    return (
        isinstance(start, int | float) and not isinstance(start, bool) and math.isfinite(start) and 0 <= start <= MOST_S
    )
