# SPDX-License-Identifier: Apache-2.0
"""Fuzz what reads files from others.

    python -m tests.fuzz.whole TARGET|captures|all [--seconds N] [--seed N] [--inputs N] [--found DIR] [--record]

Exit codes: 0 nothing found; 1 findings, which lie in --found with what they led to. --record adds the CPU time to
docs/reliability.json.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import resource
import sys
import tempfile
import time
import traceback
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from collectors import fuzz as native_fuzz
from tests import reliability
from tests.fuzz.mutate import changed
from tests.fuzz.targets import TARGETS, Target

CAPTURES = "captures"
HANG_S = 20.0
MEMORY_BYTES = 3 << 30


@dataclass
class Outcome:
    """findings: what went wrong, by its kind → input"""

    inputs: int = 0
    refused: int = 0
    cpu_s: float = 0.0
    findings: dict[str, bytes] = field(default_factory=dict)


def run(name: str, place: Path, seed: int, *, inputs: int = 10**9, seconds: float = 1e9) -> Outcome:
    """Give a target changed files until one of the bounds; here and now."""
    target = TARGETS[name](place)
    seeds = target.seeds()
    draw, outcome, begun = random.Random(f"{name} {seed}"), Outcome(), time.monotonic()  # noqa: S311
    for good in seeds[:3]:
        if said := target.read(good):
            raise RuntimeError(f"a good file is refused: {said}")
    cpu = time.process_time()
    while outcome.inputs < inputs and time.monotonic() - begun < seconds:
        data = changed(draw.choice(seeds), seeds, draw)
        outcome.inputs += 1
        if wrong := judge(target, data, outcome):
            outcome.findings.setdefault(wrong, data)
    outcome.cpu_s = time.process_time() - cpu
    return outcome


def of_captures(seconds: float, kept: Path) -> Outcome:
    """The collector's two targets, by libFuzzer, half of the time each. Raises NativeError where they cannot be built."""
    outcome = Outcome()
    for target in native_fuzz.TARGETS:
        native_fuzz.build()
        before = _children_s()
        done = native_fuzz.run(target, max(1, round(seconds / len(native_fuzz.TARGETS))), kept / target)
        outcome.cpu_s += _children_s() - before
        outcome.inputs += done.executions
        if done.finding is not None:
            outcome.findings[f"{target}: {done.finding}"] = done.finding.read_bytes()
    return outcome


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def judge(target: Target, data: bytes, outcome: Outcome) -> str:
    """What is wrong with how a file is taken; empty where nothing is."""
    begun = time.process_time()
    try:
        said = target.read(data)
    except Exception as error:  # noqa: BLE001 — that is what is looked for
        last = traceback.extract_tb(error.__traceback__)
        own = next((frame for frame in reversed(last) if "site-packages" not in frame.filename), last[-1])
        return f"{type(error).__name__} at {own.filename.rpartition('/warpbed/')[2]}:{own.lineno}: {str(error)[:160]}"
    outcome.refused += bool(said)
    if (took := time.process_time() - begun) > HANG_S:
        return f"took {took:.0f} s of CPU"
    # a space that is not ASCII's moves no cursor
    strange = [c for c in said if not c.isprintable() and c != "\n" and unicodedata.category(c) != "Zs"]
    return f"control characters in the message: {strange[:5]}" if strange else ""


def options_of(module: str, targets: Iterable[str]) -> argparse.ArgumentParser:
    """What both ways of fuzzing understand."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}")
    parser.add_argument("target", choices=list(targets))
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--inputs", type=int, default=10**9)
    parser.add_argument("--seed", type=int, default=time.time_ns())
    parser.add_argument("--found", type=Path)
    parser.add_argument("--record", action="store_true", help="add the CPU time to docs/reliability.json")
    return parser


def place_of(kept: Path, name: str, data: bytes) -> Path:
    """Where the input of a finding is kept."""
    return kept / f"{name}-{hashlib.sha256(data).hexdigest()[:12]}"


def record(name: str, by: str, inputs: int, cpu_s: float, findings: int) -> None:
    entry = {"by": by, "inputs": inputs, "cpu_s": round(cpu_s), "open": findings}
    reliability.add("fuzzing", name, entry, sums=("inputs", "cpu_s"))


def main() -> int:
    options = options_of("tests.fuzz.whole", ["all", CAPTURES, *TARGETS]).parse_args()
    if options.target != CAPTURES:  # libFuzzer has a bound of its own
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    kept = options.found or Path(tempfile.mkdtemp(prefix="warpbed-fuzz-"))
    bad = 0
    for name in TARGETS if options.target == "all" else [options.target]:
        if name == CAPTURES:
            outcome = of_captures(options.seconds, kept.resolve())
        else:
            with tempfile.TemporaryDirectory() as place:
                outcome = run(name, Path(place), options.seed, inputs=options.inputs, seconds=options.seconds)
        print(
            f"{name}: {outcome.inputs} inputs, {outcome.refused} refused, {outcome.cpu_s:.0f} s of CPU, "
            f"{len(outcome.findings)} findings",
            flush=True,
        )
        for wrong, data in outcome.findings.items():
            file = place_of(kept, name, data)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
            print(f"  {file}: {wrong!r}", flush=True)
        bad += len(outcome.findings)
        if options.record:
            by = "libFuzzer, two targets" if name == CAPTURES else "changes at random"
            record(name, by, outcome.inputs, outcome.cpu_s, len(outcome.findings))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
