# SPDX-License-Identifier: Apache-2.0
"""A checkout of its own for a module of the user's, so that an evaluation changes nothing in this one.

The kernel's build is shared through the cache; only the modules are built anew.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from base.errors import UsageError
from base.paths import ROOT
from testbed.new_algorithm import check_name

MODULE = re.compile(r"tcp_([a-z][a-z0-9_]{0,14})\.c")
LEFT_OUT = ("results", ".git", "__pycache__", "target", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis")


def name_of(folder: Path) -> str:
    """The algorithm of a folder: its one file tcp_NAME.c.

    Raises UsageError where there is none or more than one, and where the name is taken.
    """
    if not folder.is_dir():
        raise UsageError(f"--module {folder}: no such folder")
    names = sorted(match[1] for file in folder.iterdir() if (match := MODULE.fullmatch(file.name)))
    if len(names) != 1:
        listed = ", ".join(f"tcp_{name}.c" for name in names) or "none"
        raise UsageError(
            f"--module {folder}: one file tcp_NAME.c is needed, there is {listed}; see ./warpbed new-algorithm"
        )
    check_name(names[0], ROOT)
    return names[0]


def checkout(folder: Path, target: Path) -> Path:
    """A copy of this checkout at `target` with the folder's C files and headers instead of the project's algorithms; returns it.

    Files of the project's own names are refused: the project's other modules would be built with them.
    """
    sources = [file for file in sorted(folder.iterdir()) if file.suffix in (".c", ".h") and file.is_file()]
    taken = [file.name for file in sources if (ROOT / "kernels/modules" / file.name).exists()]
    if taken:
        raise UsageError(f"--module {folder}: {', '.join(taken)} is the project's own; give it another name")
    if target.exists():
        shutil.rmtree(target)
    shutil.copytree(ROOT, target, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)
    for file in (target / "kernels/modules").glob("tcp_*.c"):
        file.unlink()  # builds are quicker without
    for file in sources:
        shutil.copy2(file, target / "kernels/modules" / file.name)
    return target
