# SPDX-License-Identifier: Apache-2.0
"""Where things are: the checkout, and the cache of what can be made again, outside it and keyed by content."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The checkout."""
SENT_PACKAGES = ("base", "network", "plan", "agent")
"""What travels to a run's host, whole: the standard library and Mininet are all that they need beside one another."""


def sent_files(root: Path = ROOT) -> list[Path]:
    """The Python files of the packages that travel, by their paths below the checkout, sorted."""
    return sorted(file.relative_to(root) for name in SENT_PACKAGES for file in (root / name).rglob("*.py"))


def cache_dir() -> Path:
    """$WARPBED_CACHE, else $XDG_CACHE_HOME/warpbed, else ~/.cache/warpbed; not created here."""
    if own := os.environ.get("WARPBED_CACHE"):
        return Path(own).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "warpbed"
