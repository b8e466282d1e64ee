# SPDX-License-Identifier: Apache-2.0
"""Adding one of each kind, as docs/development.md shows it, in a copy of the checkout; one run uses all of them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hosts.virtual.launch import GuestKernel
from tests import lab
from tests.checkout import copied

PAGE = lab.ROOT / "docs/development.md"
FILE = re.compile(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", re.DOTALL)
EXPERIMENT = """\
warpbed: 1
name: added
title: A new algorithm on a new topology, measured by a new metric
duration: 3s
topology: {name: vee, params: {rate: 10mbit, buffer: 10p}}
flows:
  - {name: near, cca: zeta, from: s1, to: d1}
  - {name: far, cca: reno, from: s2, to: d1, start: 500ms}
captures: {at: ends}
metrics: [utilization, last_end_s]
expectations:
  - {metric: last_end_s, within: [2.5, 3.5], source: the flows last as long as the run}
"""
"""The near path holds 9 packets and its buffer 10: slow start's window, twice that before a loss is seen, stays below a receiver's first
window of 64 KB (45 packets), which with a larger buffer limits the flow for so long that the verdict says it.
"""


@pytest.fixture
def checkout(kernel: GuestKernel, tmp_path: Path) -> Path:
    """The copy, with the page's examples in it."""
    root = copied(tmp_path / "checkout")
    examples = dict(FILE.findall(PAGE.read_text()))
    assert {name.partition("/")[0] for name in examples} >= {"topologies", "analysis"}
    for name, text in examples.items():
        assert not (root / name).exists(), f"{name} exists; the page's example needs another name"
        (root / name).write_text(text)
    return root


def warpbed(root: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "testbed", *arguments], cwd=root, env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_an_algorithm_a_topology_and_a_metric_are_added_by_files_alone_and_used(checkout: Path) -> None:
    warpbed(checkout, "new-algorithm", "zeta")
    (checkout / "experiments/added.yml").write_text(EXPERIMENT)
    assert "far" in next(
        line for line in warpbed(checkout, "list", "topologies").splitlines() if line.startswith("vee")
    )
    assert "last_end_s [s]" in warpbed(checkout, "list", "metrics")
    warpbed(checkout, "run", "experiments/added.yml")
    [run] = json.loads(warpbed(checkout, "metrics", "added", "--format", "json"))
    assert run["verdict"] == "valid"
    assert 2.5 < run["metrics"]["last_end_s"] < 3.5
    assert {flow["cca"] for flow in run["metrics"]["flows"]} == {"zeta", "reno"}


def test_the_examples_are_in_shape(tmp_path: Path) -> None:
    ruff = Path(sys.executable).parent / "ruff"
    for name, text in FILE.findall(PAGE.read_text()):
        file = tmp_path / Path(name).name
        file.write_text(text)
        for command in (["check"], ["format", "--check"]):
            done = subprocess.run(
                [ruff, *command, "--config", str(lab.ROOT / "pyproject.toml"), file],
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
