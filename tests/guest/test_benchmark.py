# SPDX-License-Identifier: Apache-2.0
"""The benchmark of the virtual host still runs; how fast it is, is read by people and not by tests."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from benchmarks import cost_per_call, reproduction_cost
from hosts.virtual.launch import GuestKernel
from testbed.reproduction.bindings import read
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


def test_one_run_of_an_experiment_tells_time_and_disk(kernel: GuestKernel) -> None:
    """20 s at 10 Mbit/s; what the run leaves is some hundred kilobytes of records."""
    (bound,) = (one for one in read().experiments if one.file == "experiments/afifi2014/short-transfers.yml")
    measured, command_s = reproduction_cost.measure(reproduction_cost.sample(bound))
    assert (measured.virtual_s, measured.gbit) == (20, 0.2)
    assert 0 < measured.wall_s < command_s
    assert 50e3 < measured.kept_bytes < 5e6


def test_the_cost_per_call_is_measured(kernel: GuestKernel) -> None:
    """The quick form; how large the numbers are depends on the machine."""
    names = ["reno", "cubic", "medley", "ttfwc2"]
    measured = cost_per_call.measure(kernel, names, cpu=min(os.sched_getaffinity(0)), batches=2)
    costs = {cost.name: cost for cost in measured}
    assert list(costs) == names
    assert all(cost.ack_ns > 0 and cost.loss_ns > 0 for cost in costs.values())
    assert "ttfwc2" in cost_per_call.table(list(costs.values()))


def test_an_algorithm_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert cost_per_call.main(["cubix"]) == 2
    assert "did you mean cubic?" in capsys.readouterr().err
