# SPDX-License-Identifier: Apache-2.0
"""What a guest of the differential tests wrote, kept in the cache by all that decides it.

A guest's scenarios give the same hooks, bit for bit, on any machine (`test_kept_guests` makes one twice), so a guest whose kernel,
modules, programs and scenarios are those of an earlier one need not run again: a change of one module runs that module's guests alone.
WARPBED_FRESH_GUESTS=1 runs all of them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from base.cache import aside, digest, sha256_of, used
from base.paths import ROOT, cache_dir
from hosts.virtual.userland import installed
from tests.kept_results import FRESH

FOLDER = "spec-guests"
MARKER = "complete"
ENDING = ".zst"
PROGRAMS = ("tests/harness/guest.py", "tests/harness/guest_path.py", "tests/harness/guest_cycles.py", "base/linux.py")
"""What of the checkout runs in these guests."""


def key(line: Sequence[str], folder: Path) -> str:
    """Identifies a guest by its command line, the files in its folder (scenarios, modules), its programs and the user land.

    line: the kernel's file first; where the folder's name stands in the others it does not count
    """
    given = {file.name: sha256_of(file) for file in sorted(folder.iterdir()) if file.is_file()}
    programs = [sha256_of(ROOT / name) for name in PROGRAMS]
    argv = [word.replace(str(folder), "FOLDER").replace(str(ROOT), "CHECKOUT") for word in line[1:]]
    return digest([sha256_of(Path(line[0])), argv, given, programs, dict(installed())])[:32]


def restore(name: str, folder: Path) -> bool:
    """Write what the guest of this key wrote into a folder; False where it has to run."""
    entry = cache_dir() / FOLDER / name
    if os.environ.get(FRESH) or not (entry / MARKER).exists():
        return False
    for file in entry.glob(f"*{ENDING}"):
        with (
            pa.input_stream(str(file), compression="zstd") as packed,
            open(folder / file.name.removesuffix(ENDING), "wb") as out,
        ):
            shutil.copyfileobj(packed, out, 1 << 20)
    used(entry)
    return True


def keep(name: str, folder: Path, given: set[str]) -> None:
    """Keep what a guest wrote; given: names of the files that it found in its folder."""
    with aside(cache_dir() / FOLDER / name, marker=MARKER) as work:
        if work is None:
            return
        for file in folder.iterdir():
            if file.is_file() and file.name not in given:
                with (
                    open(file, "rb") as written,
                    pa.output_stream(str(work[0] / f"{file.name}{ENDING}"), compression="zstd") as packed,
                ):
                    shutil.copyfileobj(written, packed, 1 << 20)
        (work[0] / MARKER).touch()
