# SPDX-License-Identifier: Apache-2.0
"""What a killed runner leaves: the guests die with it by themselves (hosts.virtual.cage), the folders aside are removed here."""

from __future__ import annotations

import time
from pathlib import Path

from testbed.results import ASIDE, purge_aside

ATTEMPTS = 100
PAUSE_S = 0.1


def clean_up(base: str) -> None:
    """Remove the unfinished runs of a results folder; processes that die may hold theirs for a moment yet."""
    for _ in range(ATTEMPTS):
        purge_aside(Path(base))
        if not (Path(base) / ASIDE).is_dir():
            return
        time.sleep(PAUSE_S)
