# SPDX-License-Identifier: Apache-2.0
"""What a killed runner leaves: the guests die with it by themselves (hosts.virtual.cage), the folders aside are removed here."""

from __future__ import annotations

import time
from pathlib import Path

from base.watcher import BY_ITSELF
from testbed.results import ASIDE, purge_aside

ATTEMPTS = 100
PAUSE_S = 0.1


def clean_up(base: str, ended: str) -> None:
    """Remove the unfinished runs of a results folder; processes that die may hold theirs for a moment yet.

    ended: BY_ITSELF where the runner was not killed. It leaves nothing then, and what is still there belongs to others at work.
    """
    for _ in range(ATTEMPTS):
        purge_aside(Path(base))
        if ended == BY_ITSELF or not (Path(base) / ASIDE).is_dir():
            return
        time.sleep(PAUSE_S)
