# SPDX-License-Identifier: Apache-2.0
"""A program of the tests as the first process of a guest, and what it says."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from hosts.virtual import boot
from hosts.virtual.launch import GuestKernel
from plan.console import PREFIX
from tests import lab


def said(kernel: GuestKernel, root: Path, folder: Path, program: str, word: str) -> Any:
    """program: a file of tests/, which says `word` and JSON; root: its user land.

    Raises AssertionError with the console where it does not.
    """
    line = boot.arguments(
        kernel, 256, boot.SYSTEM_PYTHON, "loglevel=4", *boot.shares(kernel, folder),
        *boot.python(lab.ROOT / "tests" / program, root=root), start_ns=1, root=root,
    )  # fmt: skip
    done = subprocess.run(
        boot.caged(min(os.sched_getaffinity(0)), folder, line, boot.places(kernel, root)),
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, env=boot.environment(), timeout=200,
    )  # fmt: skip
    start = f"{PREFIX}{word} "
    answers = [text.removeprefix(start) for text in done.stdout.splitlines() if text.startswith(start)]
    assert len(answers) == 1, done.stdout + done.stderr
    return json.loads(answers[0])
