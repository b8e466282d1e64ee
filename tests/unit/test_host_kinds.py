# SPDX-License-Identifier: Apache-2.0
"""A kind of host is a folder below hosts/ and a line of hosts/kinds.json, and nothing else."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from base.paths import ROOT
from hosts.registry import HOST_KINDS, Kind
from tests import lab

PAPER = """\
from dataclasses import dataclass, field

from hosts.base import Outcome
from hosts.identity import KernelInputs


@dataclass(frozen=True)
class PaperHost:
    kind: str = "paper"
    facts: dict = field(default_factory=dict)
    one_at_a_time: bool = True

    def inputs(self, plan):
        return KernelInputs("0", {})

    def problems(self, plan):
        return ["paper executes nothing; run it with --host virtual"]

    def execute(self, run):
        return Outcome(None, {}, 0.0, 0.0)


def open_host(experiment):
    return PaperHost()
"""


def test_each_folder_with_a_host_is_a_kind_and_each_kind_has_its_folder() -> None:
    assert {file.parent.name for file in (ROOT / "hosts").glob("*/host.py")} == set(HOST_KINDS)


@pytest.mark.parametrize("kind", HOST_KINDS.values(), ids=lambda kind: kind.name)
def test_a_kind_names_an_inventory_that_is_there(kind: Kind) -> None:
    text = (ROOT / "inventory" / kind.inventory / "hosts.yml").read_text()
    assert re.search(rf"^ *{kind.prepares or kind.name}:$", text, re.MULTILINE)
    assert kind.builds in ("", "um", "x86")


def test_a_command_that_opens_no_host_loads_none() -> None:
    program = "import sys, testbed.cli, hosts.registry; print([m for m in sys.modules if m.endswith('.host')])"
    done = subprocess.run([sys.executable, "-P", "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_new_kind_is_a_folder_and_a_line(tmp_path: Path) -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        if not name.startswith(("tests/", "docs/")) and (ROOT / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "hosts/paper").mkdir()
    (tmp_path / "hosts/paper/host.py").write_text(PAPER)
    kinds = json.loads((tmp_path / "hosts/kinds.json").read_text())
    kinds["paper"] = {"text": "a sheet of paper", "inventory": "local"}
    (tmp_path / "hosts/kinds.json").write_text(json.dumps(kinds))
    file = lab.write(tmp_path, lab.SMALL + "host: paper\n")

    def warpbed(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            lab.command(*arguments),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
        )

    assert "paper: a sheet of paper" in warpbed("list", "hosts").stdout
    done = warpbed("execute", file, "--results", tmp_path / "results")
    assert done.returncode == 2 and "paper executes nothing" in done.stdout + done.stderr
