# SPDX-License-Identifier: Apache-2.0
"""Where everything lives that can be made again: outside the checkout, keyed by content."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The checkout."""


def cache_dir() -> Path:
    """$WARPBED_CACHE, else $XDG_CACHE_HOME/warpbed, else ~/.cache/warpbed; not created here."""
    if own := os.environ.get("WARPBED_CACHE"):
        return Path(own).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "warpbed"
