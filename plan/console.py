# SPDX-License-Identifier: Apache-2.0
"""What a run's host and its controller agree on besides the plan: how lines are marked, and where files lie over there."""

from __future__ import annotations

PREFIX = "WARPBED "
"""Starts every line that is meant for the controller."""
BOOTED = f"{PREFIX}booted"
"""What a virtual machine's boot script says last (hosts/vm/files/boot)."""
RUN_FOLDER = "/run/warpbed"
SOURCE, OUT, MODULES = f"{RUN_FOLDER}/source", f"{RUN_FOLDER}/out", f"{RUN_FOLDER}/modules"


def say(text: str) -> None:
    """Tell the controller."""
    print(PREFIX + text, flush=True)
