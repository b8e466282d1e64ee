# SPDX-License-Identifier: Apache-2.0
"""Answers of linters and compilers, remembered by all that decides them: the files that they read, their options and their versions.

WARPBED_FRESH_GUESTS=1 asks again.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path, PurePath

from base.cache import recall, remember, sha256_of
from base.paths import ROOT, cache_dir
from tests.kept_results import FRESH

LOCK = ROOT / "requirements-dev.lock"
"""Names each package of the environment with its digest."""


def contents(is_read: Callable[[PurePath], bool]) -> dict[str, str]:
    """The digest of each file of the checkout, by its name, of those that git knows or would add and that a tool reads."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    there = (name for name in sorted(set(names)) if name and is_read(PurePath(name)) and (ROOT / name).is_file())
    return {name: sha256_of(ROOT / name) for name in there}


def complaints(command: Iterable[str | Path], read: dict[str, str], ask: Callable[[], str]) -> str:
    """What a program of the environment complains of; that it does not is remembered for these files.

    ask: runs it; returns "" where it is content
    """
    question = ["complaints", [str(word) for word in command], sys.version, sha256_of(LOCK), read]
    if not os.environ.get(FRESH) and recall(cache_dir(), question) is not None:
        return ""
    complaint = ask()
    if not complaint:
        remember(cache_dir(), question, {"content": True})
    return complaint
