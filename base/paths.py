# SPDX-License-Identifier: Apache-2.0
"""Where things are: the checkout, the cache of what can be made again, keyed by content, and the user's own state."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The checkout."""
SENT_PACKAGES = ("base", "network", "plan", "agent")
"""What travels to a run's host, whole: the standard library and Mininet are all that they need beside one another."""


def inside(folder: Path, name: str, what: str) -> Path:
    """A file that an experiment file names, which may come from somebody else: so nothing outside of its own folder is read.

    what: what it is, for the message

    Raises ValueError for a name that leads out of the folder, by itself or over a symbolic link.
    """
    if "\0" in name:
        raise ValueError(f"{name!r} is not a file's name")
    path = folder / name
    try:
        is_inside = path.resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError) as error:  # a link that leads to itself
        raise ValueError(f"{path}: {error}") from error
    if Path(name).is_absolute() or not is_inside:
        raise ValueError(
            f"{name!r} lies outside of the experiment file's folder {folder}; put {what} into it or below it"
        )
    return path


def sent_files(root: Path = ROOT) -> list[Path]:
    """The Python files of the packages that travel, by their paths below the checkout, sorted."""
    return sorted(file.relative_to(root) for name in SENT_PACKAGES for file in (root / name).rglob("*.py"))


def cache_dir() -> Path:
    """$WARPBED_CACHE, else $XDG_CACHE_HOME/warpbed, else ~/.cache/warpbed; not created here."""
    if own := os.environ.get("WARPBED_CACHE"):
        return Path(own).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "warpbed"


def state_dir() -> Path:
    """$WARPBED_STATE, else $XDG_STATE_HOME/warpbed, else ~/.local/state/warpbed; not created here. What has to outlive the cache."""
    if own := os.environ.get("WARPBED_STATE"):
        return Path(own).absolute()
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state").absolute() / "warpbed"
