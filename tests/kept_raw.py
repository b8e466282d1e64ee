# SPDX-License-Identifier: Apache-2.0
"""`python -m tests.kept_raw …` is `./warpbed …` whose virtual guests' raw files are kept in the cache by all that decides them.

A guest that has run need not run again: plan, seed, kernel, modules, programs and the code that starts it say what it writes. All else,
from the experiment file to the plan and from the raw files to the verdict, is done by the code that is here now.
"""

from __future__ import annotations

import functools
import json
import shutil
import sys
from dataclasses import asdict

from base.cache import aside, digest, sha256_of, used
from base.paths import ROOT, cache_dir
from hosts.base import Execution, Outcome
from hosts.virtual.host import VirtualHost
from testbed import cli

FOLDER = "experiments/raw"
MARKER = "outcome.json"
MOST_BYTES = 100_000_000


@functools.cache
def starter() -> str:
    """Identifies the code that starts guests."""
    files = sorted([*(ROOT / "hosts").glob("*.py"), *(ROOT / "hosts/virtual").rglob("*.py")])
    return digest([[str(file.relative_to(ROOT)), sha256_of(file)] for file in files])


def key(host: VirtualHost, run: Execution) -> str:
    return digest([run.plan.to_json(), run.seed, asdict(host.inputs(run.plan)), starter()])[:32]


_execute = VirtualHost.execute


def execute(host: VirtualHost, run: Execution) -> Outcome:
    """As the virtual host does, or from what an equal guest has left."""
    entry = cache_dir() / FOLDER / key(host, run)
    if (entry / MARKER).exists():
        shutil.copytree(entry / "raw", run.folder, dirs_exist_ok=True)
        used(entry)
        kept = json.loads((entry / MARKER).read_text())
        return Outcome(None, **kept)
    outcome = _execute(host, run)
    size = sum(file.stat().st_size for file in run.folder.rglob("*"))
    if outcome.error is None and not run.cancelled() and size <= MOST_BYTES:
        with aside(entry, marker=MARKER) as place:
            if place:
                shutil.copytree(run.folder, place[0] / "raw")
                kept = {name: value for name, value in asdict(outcome).items() if name != "error"}
                (place[0] / MARKER).write_text(json.dumps(kept))
    return outcome


if __name__ == "__main__":
    VirtualHost.execute = execute  # type: ignore[assignment, method-assign]
    sys.exit(cli.main())
