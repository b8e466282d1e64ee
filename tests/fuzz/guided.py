# SPDX-License-Identifier: Apache-2.0
"""Fuzz what reads files from others, guided by what of the code an input reaches (Atheris).

    python -m tests.fuzz.guided TARGET [--seconds N] [--seed N] [--inputs N] [--found DIR] [--corpus DIR] [--record]

Inputs that reach something new are changed further, and kept in the corpus, where the next call begins; changes are those of mutate.py
and libFuzzer's own, half of each. Findings, exit codes and what --record adds to are those of tests.fuzz.whole; 2 where libFuzzer itself
failed.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import os
import random
import re
import sys
import tempfile
from pathlib import Path

import atheris

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = [file.parent.name for file in ROOT.glob("*/__init__.py") if file.parent.name != "tests"]

with contextlib.redirect_stderr(io.StringIO()), atheris.instrument_imports(include=PACKAGES):  # it names each module
    from tests.fuzz.mutate import changed
    from tests.fuzz.targets import TARGETS
    from tests.fuzz.whole import HANG_S, MEMORY_BYTES, Outcome, judge, options_of, place_of, record

RUNS = re.compile(rb"Done (\d+) runs|#(\d+)\t")


def child(name: str, place: Path, corpus: Path, bounds: list[str], kept: Path) -> None:
    """Fuzz until one of the bounds, options of libFuzzer's; does not return. A finding's file has the input, one beside it the reason."""
    target = TARGETS[name](place / "target")
    seeds = target.seeds()
    for number, good in enumerate(seeds):
        (corpus / str(number)).write_bytes(good)
    outcome, known = Outcome(), set[str]()

    def one(data: bytes) -> None:
        wrong = judge(target, data, outcome)
        if wrong and wrong not in known:
            known.add(wrong)
            file = place_of(kept, name, data)
            file.write_bytes(data)
            file.with_name(f"{file.name}.txt").write_text(wrong)

    def mutated(data: bytes, longest: int, draw_seed: int) -> bytes:
        draw = random.Random(draw_seed)  # noqa: S311
        made = changed(data, seeds, draw) if draw.random() < 0.5 else atheris.Mutate(data, len(data) + 64)
        return bytes(made)[:longest]

    options = [  # libFuzzer's own bounds are of wall time, which is no finding; `judge` looks at CPU time
        *bounds, f"-max_len={4 * max(map(len, seeds)) + 64}",
        f"-artifact_prefix={kept}/{name}-", f"-rss_limit_mb={MEMORY_BYTES >> 20}",
        f"-timeout={round(15 * HANG_S)}", "-report_slow_units=1000000",
    ]  # fmt: skip
    # libFuzzer ends the process by exit(); destructors of libraries whose threads still live there would make a crash of it
    libc = ctypes.CDLL(None)
    libc["__cxa_atexit"](ctypes.cast(libc["_exit"], ctypes.c_void_p), None, None)
    atheris.Setup([sys.argv[0], *options, str(corpus)], one, custom_mutator=mutated)
    atheris.Fuzz()


def main() -> int:
    parser = options_of("tests.fuzz.guided", TARGETS)
    parser.add_argument("--corpus", type=Path, help="keeps, below the target's name, what reached new code")
    options = parser.parse_args()
    kept = (options.found or Path(tempfile.mkdtemp(prefix="warpbed-fuzz-"))).resolve()
    kept.mkdir(parents=True, exist_ok=True)
    bounds = [f"-max_total_time={round(options.seconds)}", f"-runs={options.inputs}", f"-seed={options.seed % 2**32}"]
    before = set(kept.iterdir())
    with tempfile.TemporaryDirectory() as place, tempfile.TemporaryFile() as words:
        (Path(place) / "target").mkdir()
        corpus = (options.corpus or Path(place) / "corpus").resolve() / options.target
        corpus.mkdir(parents=True, exist_ok=True)
        process = os.fork()
        if not process:
            os.dup2(words.fileno(), 2)
            child(options.target, Path(place), corpus, bounds, kept)
        _, status, used = os.wait4(process, 0)
        words.seek(0)
        printed = words.read()
    numbers = [int(one or other) for one, other in RUNS.findall(printed)]
    inputs, cpu_s = max(numbers, default=0), used.ru_utime + used.ru_stime
    findings = sorted(file for file in set(kept.iterdir()) - before if file.suffix != ".txt")
    if os.waitstatus_to_exitcode(status) and not findings:
        sys.stderr.write(printed.decode(errors="replace"))
        return 2
    reached = re.findall(rb"cov: (\d+)", printed)
    print(
        f"{options.target}: {inputs} inputs, {cpu_s:.0f} s of CPU, "
        f"from {int(reached[0]) if reached else 0} to {int(reached[-1]) if reached else 0} places reached, {len(findings)} findings"
    )
    for file in findings:
        why = file.with_name(f"{file.name}.txt")
        print(f"  {file}: {why.read_text() if why.exists() else 'libFuzzer ended there'!r}")
    if options.record:
        record(f"{options.target}, guided", "Atheris, guided", inputs, cpu_s, len(findings))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
