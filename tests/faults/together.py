# SPDX-License-Identifier: Apache-2.0
"""Give a command twice at once, on one results folder; look at what is there, and give it a third time.

    python -m tests.faults.together [--case NAME] [--times N] [--seed N] [--record]

The second begins at a moment drawn over the time that the command takes alone. --record adds the counts to docs/reliability.json.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests import reliability
from tests.faults.cases import Case
from tests.faults.forks import forked, started, unclear, warm
from tests.faults.registry import CASES

NAMES = ("transfer", "collect", "run", "reproduce", "store load")


@dataclass
class Outcome:
    """refused: times in which one of the two would not begin beside the other"""

    times: int = 0
    refused: int = 0
    violations: list[str] = field(default_factory=list)


def run(name: str, folder: Path, times: int, seed: int) -> Outcome:
    outcome, draw = Outcome(), random.Random(f"{name} {seed}")  # noqa: S311
    took_s = 0.0
    for number in range(times + 1):
        data = folder / "data"
        shutil.rmtree(data, ignore_errors=True)
        case: Case = CASES[name](data)
        case.prepare()
        if number == 0:
            warm(case.work)
            case.check(whole=True, settled=True)  # what a run says, for all further ones
            shutil.rmtree(data)
            case.prepare()
            begun = time.monotonic()
            forked(case.work)
            took_s = time.monotonic() - begun
            continue
        first = started(case.work)
        time.sleep(draw.random() * took_s)
        ends = [started(case.work)(), first()]
        outcome.times += 1
        outcome.refused += any(code for code, _ in ends)
        wrong = [text for code, words in ends for text in unclear(code, words)]
        if all(code for code, _ in ends):
            wrong.append(f"neither did it: {[words[-300:] for _, words in ends]}")
        wrong += case.check(whole=True, settled=False)
        code, words = forked(case.work)
        if code:
            wrong.append(f"the third command failed: {words[-500:]}")
        wrong += case.check(whole=True, settled=True)
        outcome.violations += [f"time {number}: {text}" for text in wrong]
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.together", description=__doc__.partition("\n")[0])
    parser.add_argument("--case", choices=NAMES)
    parser.add_argument("--times", type=int, default=50, help="of each command")
    parser.add_argument("--seed", type=int, default=time.time_ns())
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    violations = 0
    for name in (
        [options.case] if options.case else [name for name in NAMES if name != "store load" or os.geteuid() == 0]
    ):
        with tempfile.TemporaryDirectory() as place:
            outcome = run(name, Path(place), options.times, options.seed)
        violations += len(outcome.violations)
        print(f"{name}: {outcome.times} times, {len(outcome.violations)} violations", flush=True)
        print("\n".join(outcome.violations), end="\n" if outcome.violations else "", file=sys.stderr)
        if options.record:
            entry = {"times": outcome.times, "refused": outcome.refused, "violations": len(outcome.violations)}
            reliability.add("together", reliability.COMMANDS[name], entry, sums=tuple(entry))
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
