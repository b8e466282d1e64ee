# SPDX-License-Identifier: Apache-2.0
"""A copy of this checkout that a test may change."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from base.paths import ROOT


def copied(target: Path, *, modules: bool = False) -> Path:
    """Copy what git knows or would add to `target`; without the project's algorithms, unless `modules`, builds are quick."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in filter(None, names):
        if (name.startswith("kernels/modules/tcp_") and not modules) or not (ROOT / name).is_file():
            continue
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, target / name)
    return target
