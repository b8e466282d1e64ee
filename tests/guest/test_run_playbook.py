# SPDX-License-Identifier: Apache-2.0
"""The main job as people call it: the playbook by itself and `./warpbed run`."""

from __future__ import annotations

from pathlib import Path

from hosts.virtual.launch import GuestKernel
from tests import lab, plays, recap


def test_the_playbook_runs_an_experiment_and_a_second_play_changes_nothing(kernel: GuestKernel, tmp_path: Path) -> None:
    file = lab.write(tmp_path, lab.SMALL)
    variables = {"experiment": str(file), "experiment_results": str(tmp_path / "results")}
    first = plays.run("run_experiment", variables=variables)
    assert "[1/1] s1-" in first and "report: " in first
    assert first.rstrip().splitlines()[-1].startswith("report: ")  # the result comes last
    assert len(lab.runs(tmp_path / "results/small")) == 1
    second = plays.run("run_experiment", variables=variables, counted=True)
    assert "nothing to do: all 1 runs are there" in second
    recap.assert_changes_nothing(second)


def test_the_readmes_call_with_a_relative_path_finds_the_file() -> None:
    plays.run("run_experiment", "--check", "-e", "experiment=experiments/quickstart.yml")
    output = plays.run("run_experiment", "--check", "-e", "experiment=experiments/quickstar.yml", code=2)
    assert "quickstar.yml: No such file" in output


def test_run_gives_the_codes_of_the_contract(kernel: GuestKernel, tmp_path: Path) -> None:
    file = lab.write(tmp_path, lab.SMALL)
    output = lab.warpbed("run", file, "--results", tmp_path / "results")
    assert "report: " in output
    claim = "expectations: [{metric: utilization, min: 2.0}]\n"
    output = lab.warpbed("run", lab.write(tmp_path, lab.SMALL + claim), "--results", tmp_path / "results", code=1)
    assert "does not hold: utilization ≥ 2" in output
    assert "invalid choice" in lab.warpbed("run", file, "--host", "moon", code=2)
