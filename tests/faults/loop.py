# SPDX-License-Identifier: Apache-2.0
"""Repeat a case with its n-th call failing, and check after each repetition what must always hold.

    python -m tests.faults.loop CASE FOLDER ERROR [--first N] [--step N] [--most N] [--stays]

ERROR is ENOSPC, EIO, or SHORT for reads and writes that do half. One line of JSON at the end: calls, faults, violations.
`preloaded` gives the environment; the process imports everything once and does each repetition in a fork.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import json
import mmap
import os
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.faults.cases import Case
from tests.faults.forks import forked, unclear, warm
from tests.faults.registry import CASES, ON_SOCKETS

NUMBERS = ctypes.c_longlong * 5
CALLS, TARGET, ERROR, STAYS, FAULTS = range(5)
ERRORS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "SHORT": 0}
SOURCE = Path(__file__).with_name("shim.c")


@dataclass
class Outcome:
    """calls: those that count with this error, of a command in which none fails
    faults: repetitions in which a call failed; refused: those of them that ended with an error, the others completed all the same
    """

    case: str
    error: str
    stays: bool
    calls: int = 0
    faults: int = 0
    refused: int = 0
    passed_whole: bool = False
    violations: list[str] = field(default_factory=list)


def preloaded(folder: Path, case: str) -> dict[str, str]:
    """The environment of a process whose files below `folder`/data can fail in this case. Compiles the shim."""
    library = folder / "shim.so"
    compiler = ["cc", "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(compiler, check=True, capture_output=True, text=True)
    (folder / "state").write_bytes(bytes(ctypes.sizeof(NUMBERS)))
    return {
        **os.environ,
        "LD_PRELOAD": str(library),
        "FAULT_FOLDER": str(folder / "data"),
        "FAULT_STATE": str(folder / "state"),
        "OMP_NUM_THREADS": "1",
        "ARROW_NUM_THREADS": "1",
        **({"FAULT_SOCKETS": "1"} if case in ON_SOCKETS else {}),
    }


def run(
    name: str, folder: Path, error: str, *, first: int = 1, step: int = 1, most: int = 10**6, stays: bool = False
) -> Outcome:
    """All repetitions of a case, here and now: this process has the shim."""
    with open(folder / "state", "r+b") as file:
        shared = mmap.mmap(file.fileno(), 0)
    state = NUMBERS.from_buffer(shared)
    outcome = Outcome(name, error, stays)
    number = first
    while outcome.faults < most:
        data = folder / "data"
        shutil.rmtree(data, ignore_errors=True)
        case: Case = CASES[name](data)
        case.prepare()
        if number == first:
            warm(case.work)
            case.check(whole=True, settled=True)  # what a run says, for all further ones
            shutil.rmtree(data)
            case.prepare()
        state[CALLS], state[FAULTS], state[ERROR], state[STAYS] = 0, 0, ERRORS[error], int(stays)
        state[TARGET] = number
        code, words = forked(case.work)
        state[TARGET] = 0
        if not state[FAULTS]:
            outcome.calls = state[CALLS]
            outcome.passed_whole = code == 0
            if code:
                outcome.violations.append(f"without any fault: exit code {code}: {words[-300:]}")
            break
        outcome.faults += 1
        outcome.refused += code != 0
        wrong = [*unclear(code, words), *case.check(whole=code == 0, settled=False)]
        again, said = forked(case.work)
        if again:
            wrong.append(f"the next command did not complete it: exit code {again}: {said[-600:]}")
        wrong += case.check(whole=True, settled=True)
        outcome.violations += [f"call {number}: {text}" for text in wrong]
        number += step
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("case", choices=sorted(CASES))
    parser.add_argument("folder", type=Path)
    parser.add_argument("error", choices=sorted(ERRORS))
    for name, default in (("first", 1), ("step", 1), ("most", 10**6)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--stays", action="store_true")
    options = vars(parser.parse_args())
    outcome = run(options.pop("case"), options.pop("folder"), options.pop("error"), **options)
    print(json.dumps(asdict(outcome)))
    return 1 if outcome.violations else 0


if __name__ == "__main__":
    sys.exit(main())
