# SPDX-License-Identifier: Apache-2.0
"""The main job as people call it: the playbook by itself and `./warpbed run`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from testbed.virtual.launch import GuestKernel
from tests import lab, recap

EXECUTE = "Execute the runs that are missing, then report"


def play(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """ansible-playbook playbooks/run_experiment.yml by itself; its output names every task that changed something."""
    return subprocess.run(
        [str(Path(sys.executable).parent / "ansible-playbook"), "playbooks/run_experiment.yml", *arguments],
        capture_output=True,
        text=True,
        cwd=lab.ROOT,
        timeout=300,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "ANSIBLE_CONFIG": str(lab.ROOT / "ansible.cfg"), **more},
    )


def test_the_playbook_runs_an_experiment_and_a_second_play_changes_nothing(kernel: GuestKernel, tmp_path: Path) -> None:
    file = lab.write(tmp_path, lab.SMALL)
    variables = json.dumps({"experiment": str(file), "experiment_results": str(tmp_path / "results")})
    first = play("-e", variables)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "[1/1] s1-" in first.stdout and "report: " in first.stdout
    assert EXECUTE in first.stdout
    assert len(lab.runs(tmp_path / "results/small")) == 1
    second = play("-e", variables, **recap.WORDS)
    assert second.returncode == 0, second.stdout + second.stderr
    assert "nothing to do: all 1 runs are there" in second.stdout
    recap.assert_changes_nothing(second.stdout)


def test_the_readmes_call_with_a_relative_path_finds_the_file() -> None:
    done = play("--check", "-e", "experiment=experiments/quickstart.yml")
    assert done.returncode == 0, done.stdout + done.stderr
    done = play("--check", "-e", "experiment=experiments/quickstar.yml")
    assert done.returncode == 2
    assert "quickstar.yml: No such file" in done.stdout + done.stderr


def test_run_gives_the_codes_of_the_contract(kernel: GuestKernel, tmp_path: Path) -> None:
    file = lab.write(tmp_path, lab.SMALL)
    words = lab.warpbed("run", file, "--results", tmp_path / "results")
    assert "report: " in words
    claim = "expectations: [{metric: utilization, min: 2.0}]\n"
    words = lab.warpbed("run", lab.write(tmp_path, lab.SMALL + claim), "--results", tmp_path / "results", code=1)
    assert "does not hold: utilization ≥ 2" in words
    assert "invalid choice" in lab.warpbed("run", file, "--host", "moon", code=2)
