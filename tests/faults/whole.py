# SPDX-License-Identifier: Apache-2.0
"""Let every call of a command to the kernel fail, one after the other (tests/faults); prints a row per case and error.

    python -m tests.faults.whole [--case NAME] [--error NAME] [--step N]

Each repetition is a command with the n-th call failing (or all from there on), the invariants, the command again, and
the invariants again. The table of docs/reliability.md comes from here; it takes about an hour.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from base.paths import ROOT
from tests.faults import loop

CASES = ("transfer", "collect", "run")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--case", choices=CASES)
    parser.add_argument("--error", choices=sorted(loop.ERRORS))
    parser.add_argument("--step", type=int, default=1)
    options = parser.parse_args()
    violations = 0
    print(
        "| command | error | from there on | calls failed | refused | violations | minutes |\n|---|---|---|---|---|---|---|"
    )
    for case in [options.case] if options.case else CASES:
        for error in [options.error] if options.error else sorted(loop.ERRORS):
            for stays in (False, True) if error != "SHORT" else (False,):
                violations += _row(case, error, stays, options.step)
    return 1 if violations else 0


def _row(case: str, error: str, stays: bool, step: int) -> int:
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "tests.faults.loop", case, folder, error, f"--step={step}", *["--stays"] * stays],
            env=loop.preloaded(Path(folder)), cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
    outcome = json.loads(done.stdout.splitlines()[-1])
    wrong: list[str] = outcome["violations"]
    minutes = (time.monotonic() - begun) / 60
    print(f"| {case} | {error} | {'all fail' if stays else 'one fails'} | {outcome['faults']} | {outcome['refused']} "
          f"| {len(wrong)} | {minutes:.1f} |", flush=True)  # fmt: skip
    for text in wrong:
        print(text, file=sys.stderr)
    return len(wrong)


if __name__ == "__main__":
    sys.exit(main())
