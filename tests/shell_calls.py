# SPDX-License-Identifier: Apache-2.0
"""In the place of testbed.finish: each call is a shell script, which lies beside the folder that is to be finished."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

SCRIPT = "script"


def ready() -> None:
    """Nothing is imported."""


def main(words: list[str]) -> int:
    shell = shutil.which("sh")
    assert shell is not None
    os.execv(shell, ["sh", str(Path(words[0]).with_name(SCRIPT))])
