# SPDX-License-Identifier: Apache-2.0
"""Fuzz the packet collector with libFuzzer, from the corpus in collectors/pcap/fuzz.

    python -m collectors.fuzz capture|packets [--seconds N] [--found DIR]

Exit codes: 0 nothing found; 1 an input that crashes, hangs or takes too much memory, its path is printed; 2 no compiler.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from base import screen
from base.cache import locked
from base.paths import cache_dir
from collectors import native
from collectors.errors import NativeError

FUZZ = native.CRATE / "fuzz"
TARGETS = ("capture", "packets")
LONGEST_INPUT_BYTES = 8192
"""Some hundred packets, a few connections."""
HANG_S = 60
MEMORY_MIB = 1024
BETWEEN = ("sh", "-c", '"$@"; exit $?', "sh")
"""A small process that starts the fuzzer: a process counts the memory of the one that started it among its own largest (getrusage), and
libFuzzer goes by that."""
LAST_LINES = 25


@dataclass(frozen=True)
class Outcome:
    """edges: of the program's control flow that were seen, in the part that is instrumented"""

    executions: int
    edges: int
    new_inputs: int
    finding: Path | None
    words: str


def build() -> Path:
    """Compile the targets, where their sources changed; returns the folder with them. Raises NativeError."""
    cargo = native.find_cargo()
    # fuzz/.cargo/config.toml has the flags; those of the environment would take their place
    environment = {name: value for name, value in os.environ.items() if not name.endswith("RUSTFLAGS")}
    environment |= {
        "CARGO_TARGET_DIR": str(native.target_dir()),
        "CARGO_TERM_COLOR": "never",
        "PATH": f"{cargo.parent}:{os.environ.get('PATH', '')}",
    }
    with locked(cache_dir() / "native" / ".locks" / "target"):
        completed = subprocess.run(
            [cargo, "build", "--release", "--locked", "--quiet"],
            cwd=FUZZ,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    if completed.returncode:
        last_lines = "\n".join(completed.stderr.strip().splitlines()[-LAST_LINES:])
        raise NativeError(f"the fuzzers could not be built ({cargo}):\n{last_lines}")
    return native.target_dir() / "x86_64-unknown-linux-gnu" / "release"


def run(target: str, seconds: int, crashes: Path) -> Outcome:
    """Every input of the corpus, then new ones for `seconds`. `found` takes inputs of new coverage, and in findings/ what breaks it."""
    program = build() / target
    findings = crashes / "findings"
    findings.mkdir(parents=True, exist_ok=True)
    completed = subprocess.run(
        [*BETWEEN, program, f"-max_total_time={seconds}", f"-max_len={LONGEST_INPUT_BYTES}", f"-timeout={HANG_S}",
         f"-rss_limit_mb={MEMORY_MIB}", "-print_final_stats=1", "-verbosity=1", f"-artifact_prefix={findings}/",
         crashes, FUZZ / "corpus" / target],
        capture_output=True, text=True, errors="replace", check=False,
    )  # fmt: skip
    output = completed.stderr
    edges = [int(number) for number in re.findall(r"\bcov: (\d+)", output)]
    broken = re.search(r"Test unit written to (.+)", output)
    if completed.returncode and broken is None:
        raise NativeError(
            f"{program} ended with {completed.returncode}:\n" + "\n".join(output.splitlines()[-LAST_LINES:])
        )
    return Outcome(
        _stat(output, "number_of_executed_units"),
        max(edges, default=0),
        _stat(output, "new_units_added"),
        Path(broken[1]) if broken else None,
        output,
    )


def _stat(output: str, name: str) -> int:
    """Of libFuzzer's final statistics; 0 where a finding ended it before."""
    match = re.search(rf"stat::{name}:\s+(\d+)", output)
    return int(match[1]) if match else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m collectors.fuzz", description=__doc__.partition("\n")[0])
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--found", type=Path, help="keep new inputs and findings there (default: a temporary folder)")
    options = parser.parse_args()
    if options.seconds < 1:
        parser.error(f"--seconds {options.seconds}: a number from 1 on")
    crashes = options.found or Path(tempfile.mkdtemp(prefix="warpbed-fuzz-"))
    try:
        outcome = run(options.target, options.seconds, crashes.resolve())
    except NativeError as error:
        print(error, file=sys.stderr)
        return 2
    print(
        f"{outcome.executions} executions, {outcome.edges} edges, {outcome.new_inputs} new inputs of new coverage in {crashes}"
    )
    if outcome.finding is not None:
        print("\n".join(outcome.words.splitlines()[-LAST_LINES:]), file=sys.stderr)
        print(f"finding: {outcome.finding}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    screen.install()
    sys.exit(main())
