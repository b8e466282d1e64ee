# SPDX-License-Identifier: Apache-2.0
"""Many runs leave nothing at the scheduler and the client: their memory does not grow with the number of runs."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from base.paths import ROOT

RUNS, TOLD_RUNS = 6000, 2000  # benchmarks.engine_overhead tells its memory so often
LEAST_OF_A_RUN = 15_000
"""Bytes that go through the scheduler for each."""


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_runs() -> None:
    """If the scheduler kept what it sends, the last 4000 runs would take 60 MB."""
    done = subprocess.run(
        [
            sys.executable,
            "-P",
            "-m",
            "benchmarks.engine_overhead",
            "--workers",
            "10",
            "--runs",
            str(RUNS),
            "--sleep-s",
            "2",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    told = {int(runs): int(mb) for runs, mb in re.findall(r"^(\d+) of .* (\d+) MB$", done.stdout, re.MULTILINE)}
    assert told.keys() == {TOLD_RUNS, 2 * TOLD_RUNS, RUNS}, done.stderr
    assert (told[RUNS] - told[TOLD_RUNS]) * 1e6 < (RUNS - TOLD_RUNS) * LEAST_OF_A_RUN / 4
