# SPDX-License-Identifier: Apache-2.0
"""Kill commands (kill -9) at random moments, and look at what is left; then the same command completes it.

    python -m tests.faults.killing [--case NAME] [--kills N] [--seed N] [--record]

Moments are drawn evenly over the time that the case took when it was let alone. The commands are those of cases.py: a guest is
imitated (tests/guest/test_killing.py kills commands with real ones). --record adds the counts to docs/reliability.json.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests import reliability
from tests.faults.cases import Case
from tests.faults.forks import forked, warm
from tests.faults.registry import CASES
from tests.processes import processes_of
from tests.waiting import wait_until

NAMES = ("transfer", "collect", "run", "reproduce", "store load")
GONE_WITHIN_S = 60.0


@dataclass
class Outcome:
    """running: kills that met the command alive"""

    kills: int = 0
    running: int = 0
    violations: list[str] = field(default_factory=list)


def run(name: str, folder: Path, kills: int, seed: int) -> Outcome:
    outcome, draw, took_s = Outcome(), random.Random(f"{name} {seed}"), 0.0  # noqa: S311
    for number in range(kills + 1):
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
            code, words = forked(case.work)
            took_s = time.monotonic() - begun
            if code:
                raise RuntimeError(words)
            continue
        moment_s = draw.random() * took_s
        outcome.kills += 1
        outcome.running += killed(case, moment_s)
        wait_until(lambda data=data: not processes_of(data), GONE_WITHIN_S, say=lambda data=data: processes_of(data))  # type: ignore[misc]
        wrong = case.check(whole=False, settled=False)
        code, words = forked(case.work)
        if code:
            wrong.append(f"the next command did not complete it: {words[-500:]}")
        wrong += case.check(whole=True, settled=True)
        outcome.violations += [f"after {moment_s:.3f} s: {text}" for text in wrong]
    return outcome


def killed(case: Case, moment_s: float) -> bool:
    """Start the command, and kill it at that moment; whether it still ran."""
    child = os.fork()
    if child == 0:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        os._exit(case.work() and 1)
    time.sleep(moment_s)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.killing", description=__doc__.partition("\n")[0])
    parser.add_argument("--case", choices=NAMES)
    parser.add_argument("--kills", type=int, default=200, help="of each command")
    parser.add_argument("--seed", type=int, default=time.time_ns())
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    violations = 0
    for name in [options.case] if options.case else NAMES:
        with tempfile.TemporaryDirectory() as place:
            outcome = run(name, Path(place), options.kills, options.seed)
        violations += len(outcome.violations)
        print(
            f"{name}: {outcome.kills} kills, {outcome.running} while it ran, {len(outcome.violations)} violations",
            flush=True,
        )
        print("\n".join(outcome.violations), end="\n" if outcome.violations else "", file=sys.stderr)
        if options.record:
            entry = {"kills": outcome.kills, "running": outcome.running, "violations": len(outcome.violations)}
            reliability.add("kills", reliability.COMMANDS[name], entry, sums=("kills", "running", "violations"))
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
