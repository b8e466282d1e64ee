# SPDX-License-Identifier: Apache-2.0
"""The benchmark of the virtual host still runs; how fast it is, is read by people and not by tests."""

from __future__ import annotations

import os
import subprocess
import sys

from testbed.virtual.launch import GuestKernel
from tests import lab


def test_the_quick_form_measures_one_case(kernel: GuestKernel) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "benchmarks.virtual_speed", "--quick", "--cpu", str(min(os.sched_getaffinity(0)))],
        capture_output=True,
        text=True,
        cwd=lab.ROOT,
        timeout=100,
        check=False,
        env={**os.environ, "PYTHONPATH": str(lab.ROOT)},
    )
    assert done.returncode == 0, done.stderr
    goodput_mbps, _, speed, target = map(float, done.stdout.splitlines()[-1].split()[-4:])
    assert 85 < goodput_mbps < 100
    assert speed > 0 and target == 12
