# SPDX-License-Identifier: Apache-2.0
"""Disturb a command at moments drawn over the time that it takes alone: what killing.py and together.py have in common."""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests import reliability
from tests.faults.cases import Case
from tests.faults.forks import forked, warm
from tests.faults.registry import CASES, COMMANDS, ON_SOCKETS


@dataclass
class Outcome:
    """counts: what else the disturbance counted, by name"""

    times: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)


Disturb = Callable[[Case, float, Outcome], list[str]]
"""Disturbs a prepared case at a moment (seconds), adds to the counts, and tells what is wrong. The case is completed afterwards."""


def run(name: str, folder: Path, times: int, seed: int, disturb: Disturb) -> Outcome:
    """Let the case pass alone, then disturb it so many times, complete it with one more command, and look at what is there.

    Raises RuntimeError with the command's words where it fails alone.
    """
    outcome, draw = Outcome(), random.Random(f"{name} {seed}")  # noqa: S311
    took_s = _alone(name, folder / "data")
    for _ in range(times):
        case = _fresh(name, folder / "data")
        moment_s = draw.random() * took_s
        outcome.times += 1
        wrong = disturb(case, moment_s, outcome)
        code, words = forked(case.work)
        if code:
            wrong.append(f"the next command did not complete it: {words[-500:]}")
        wrong += case.check(whole=True, settled=True)
        outcome.violations += [f"after {moment_s:.3f} s: {text}" for text in wrong]
    return outcome


def _fresh(name: str, data: Path) -> Case:
    shutil.rmtree(data, ignore_errors=True)
    case = CASES[name](data)
    case.prepare()
    return case


def _alone(name: str, data: Path) -> float:
    """Seconds that the command takes when its modules are imported; the case learns what a run says."""
    case = _fresh(name, data)
    warm(case.work)
    if wrong := case.check(whole=True, settled=True):
        raise RuntimeError(f"{name}, left alone: {wrong}")
    case = _fresh(name, data)
    begun = time.monotonic()
    code, words = forked(case.work)
    if code:
        raise RuntimeError(words)
    return time.monotonic() - begun


def main(program: str, description: str, section: str, noun: str, disturb: Disturb, times: int) -> int:
    """The command line of a disturbance.

    section: of docs/reliability.json; noun: what its times are called, there and on the terminal; times: of each command
    """
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=description)
    parser.add_argument("--case", choices=COMMANDS)
    parser.add_argument(f"--{noun}", dest="times", type=int, default=times, help="of each command")
    parser.add_argument("--seed", type=int, default=time.time_ns())
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    possible = [name for name in COMMANDS if name not in ON_SOCKETS or os.geteuid() == 0]
    violations = 0
    for name in [options.case] if options.case else possible:
        with tempfile.TemporaryDirectory() as place:
            outcome = run(name, Path(place), options.times, options.seed, disturb)
        violations += len(outcome.violations)
        entry = {noun: outcome.times, **outcome.counts, "violations": len(outcome.violations)}
        print(f"{name}: {_told(entry)}", flush=True)
        print("\n".join(outcome.violations), end="\n" if outcome.violations else "", file=sys.stderr)
        if options.record:
            reliability.add(section, reliability.COMMANDS[name], entry, sums=tuple(entry))
    return 1 if violations else 0


def _told(entry: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in entry.items())
