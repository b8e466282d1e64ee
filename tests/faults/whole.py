# SPDX-License-Identifier: Apache-2.0
"""Let every call of a command to the kernel fail, one after the other (tests/faults); prints a row per case and error.

    python -m tests.faults.whole [--case NAME] [--error NAME] [--stays] [--first N] [--step N] [--beside N] [--record]

Each repetition is a command with the n-th call failing (or, with --stays, all from there on), the invariants, the command again, and
the invariants again. All of it is some 40 minutes of CPU. --beside: so many processes share the numbers, which helps where a case waits
for others, as `store load` does for its database (each process has one of its own). --record puts the counts into
docs/reliability.json, from which `python -m tests.reliability` writes the tables of docs/reliability.md; not those of a row that
ended before all its calls were tried.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from base.paths import ROOT
from tests import reliability
from tests.faults import loop
from tests.faults.registry import COMMANDS

WAYS = [("EIO", False), ("ENOSPC", True), ("SHORT", False), ("ENOSPC", False)]
MEMORY = Path("/dev/shm")
"""What is tried is which call fails, not how long a disk takes."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--case", choices=COMMANDS)
    parser.add_argument("--error", choices=sorted(loop.ERRORS))
    parser.add_argument("--stays", action="store_true")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--step", type=int, default=1)
    parser.add_argument("--beside", type=int, default=1)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    chosen = [options.case] if options.case else COMMANDS
    ways = [(options.error, options.stays)] if options.error else WAYS
    violations = 0
    for error, stays in ways:
        for case in chosen:
            outcome = shared(case, error, options.first, options.step, options.beside, stays=stays)
            wrong: list[str] = outcome.pop("violations")
            violations += len(wrong)
            print(json.dumps({**outcome, "violations": len(wrong)}), flush=True)
            print("\n".join(wrong), end="\n" if wrong else "", file=sys.stderr, flush=True)
            if options.record and outcome["passed_whole"]:  # else it ended before all calls were tried
                entry = {"first": options.first, "step": options.step, **outcome, "violations": len(wrong)}
                reliability.add("faults", f"{case} {error}{' stays' if stays else ''}", entry)
    return 1 if violations else 0


def shared(case: str, error: str, first: int, step: int, beside: int, *, stays: bool) -> dict[str, Any]:
    """The numbers first, first + step … as rows of `beside` processes, added up."""
    with ThreadPoolExecutor(beside) as pool:
        rows = list(pool.map(lambda n: row(case, error, first + n * step, beside * step, stays=stays), range(beside)))
    return {
        **rows[0],
        "calls": max(one["calls"] for one in rows),
        "faults": sum(one["faults"] for one in rows),
        "refused": sum(one["refused"] for one in rows),
        "passed_whole": all(one["passed_whole"] for one in rows),
        "violations": [text for one in rows for text in one["violations"]],
    }


def row(case: str, error: str, first: int, step: int, *, stays: bool) -> dict[str, Any]:
    """One case with one error, in a process of its own; what loop.py says of it."""
    place = MEMORY if os.access(MEMORY, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place) as folder:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "tests.faults.loop", case, folder, error, f"--first={first}", f"--step={step}",
             *["--stays"] * stays],
            env=loop.preloaded(Path(folder), case), cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
    if not done.stdout:
        raise RuntimeError(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    sys.exit(main())
