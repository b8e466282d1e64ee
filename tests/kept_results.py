# SPDX-License-Identifier: Apache-2.0
"""Results of small experiments, kept in the cache by all that decides them: for tests of what results say, not of how they come about.

Equal runs give equal bytes (`test_determinism` and `test_replays` run each time and hold that), so an experiment is executed
again only where its text, the code, the kernel build or the user land has changed; even then the guests whose plan, kernel, modules and
programs are as they were need not run again (tests/kept_raw.py). WARPBED_FRESH_GUESTS=1 executes all of them.
"""

from __future__ import annotations

import functools
import os
import shutil
from pathlib import Path
from typing import Any

from base.cache import aside, digest, sha256_of, used
from base.paths import ROOT, cache_dir
from collectors import native
from hosts.virtual.kernel import find
from hosts.virtual.userland import userland
from kernels import upkeep
from tests import lab

FRESH = "WARPBED_FRESH_GUESTS"
FOLDER = "experiments"
MARKER = "complete"
OTHERS = ("benchmarks", "dashboards", "docs", "playbooks", "store", "tests", "tools")
"""Folders of the checkout whose Python takes no part in executing an experiment."""
MOST_BYTES = 400_000_000
MOST_BYTES_OF_ALL = 8_000_000_000
"""Of this and what `kept_raw` keeps, a multiple of what one state of the project has; each change of its code makes others."""


@functools.cache
def code() -> str:
    """Identifies everything but the experiment: the project's code, its packages, the kernel build and the user land."""
    files = sorted(
        file
        for top in ROOT.iterdir()
        if top.is_dir() and top.name not in OTHERS and not top.name.startswith(".")
        for file in top.rglob("*.py")
    )
    hashes = [[str(file.relative_to(ROOT)), sha256_of(file)] for file in files]
    return digest([hashes, sha256_of(ROOT / "requirements.lock"), native.key(), find("default").key, dict(userland())])


def results(folder: Path, text: str, *arguments: str) -> Path:
    """The folder of the results that `lab.execute` makes in `folder`; a copy where an equal checkout has made them before."""
    entry = cache_dir() / FOLDER / digest([code(), text, arguments])[:32]
    place = folder / "results"
    if not os.environ.get(FRESH) and (entry / MARKER).exists():
        lab.write(folder, text)
        shutil.copytree(entry / "results", place, symlinks=True)
        used(entry)
        return lab.only_folder(place)
    folder_of_runs = lab.execute(
        folder, text, *arguments, program="testbed" if os.environ.get(FRESH) else "tests.kept_raw"
    )
    if sum(file.lstat().st_size for file in place.rglob("*")) <= MOST_BYTES:
        with aside(entry, marker=MARKER) as work:
            if work is not None:
                shutil.copytree(place, work[0] / "results", symlinks=True)
                (work[0] / MARKER).touch()
    return folder_of_runs


def run(folder: Path, name: str, text: str) -> dict[str, Any]:
    """run.json and `path` of an experiment of one run, whose results are in `folder`/`name`."""
    (folder / name).mkdir()
    (only,) = lab.runs(results(folder / name, text))
    return only


def forget(cache: Path, most_bytes: int = MOST_BYTES_OF_ALL) -> int:
    """Remove what was not used for longest, until no more than so many bytes are kept; returns how many entries went."""
    kept = list(upkeep.entries(cache, (FOLDER, f"{FOLDER}/raw")))
    gone, total = 0, sum(entry.size for entry in kept)
    for entry in sorted(kept, key=lambda one: one.idle, reverse=True):
        if total <= most_bytes:
            break
        if upkeep.prune(cache, [entry], entry.idle):  # not one that a test has begun to use meanwhile
            gone, total = gone + 1, total - entry.size
    return gone
