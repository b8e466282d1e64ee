# SPDX-License-Identifier: Apache-2.0
"""A kind of traffic is one file in each of four folders, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from agent.traffic.worker import PROGRAMS
from collectors.applications import KINDS as ROWS
from schema.traffic import KINDS
from testbed.compile_traffic import COMPILERS
from tests import lab

PACKAGES = (
    "agent",
    "analysis",
    "base",
    "collectors",
    "hosts",
    "kernels",
    "network",
    "plan",
    "schema",
    "testbed",
    "topologies",
)
FILES = {
    "schema/traffic/kinds/beat.py": """
from typing import Literal
from schema.traffic.entry import Entry

class Beat(Entry):
    kind: Literal["beat"]
    beats: int = 3
""",
    "testbed/traffic/beat.py": """
def beat(entry, context):
    context.add("client", entry.source, {"to": entry.destination, "beats": entry.beats})

COMPILERS = {"beat": beat}
""",
    "agent/traffic/programs/beat.py": """
def beat(plan, addresses, control):
    return {"beaten": plan.settings["beats"]}

PROGRAMS = {("beat", "client"): beat}
""",
    "collectors/applications/kinds/beat.py": """
from collectors.applications.kind import Kind, own

KINDS = {"beat": Kind(lambda sides, parts: own(sides["client"][0]))}
""",
}
USE = """
import json, pathlib, sys
from agent.traffic.worker import work
from collectors import applications
from testbed.experiments import prepare

folder = pathlib.Path(sys.argv[1])
plan = prepare(folder / "experiment.yml").plans[0]
(part,) = plan.traffic
(folder / "t1.client.s1.json").write_text(json.dumps(work(part, {}, None)))
print(json.dumps(applications.rows(folder, plan)))
"""


def test_every_layer_knows_the_same_kinds() -> None:
    assert set(KINDS) == set(COMPILERS) == set(ROWS) == {kind for kind, side in PROGRAMS if side == "client"}
    assert {kind for kind, entry in KINDS.items() if entry.data_comes_from_the_server} == {
        kind for kind, row in ROWS.items() if row.data_comes_from_the_server
    }


def test_a_kind_is_added_by_one_file_in_each_layer(tmp_path: Path) -> None:
    """In a copy of the packages: from the experiment file over the plan and the program to the row of its results."""
    skip = shutil.ignore_patterns("__pycache__", "target", "*.so", "*.c", "*.patch")
    for package in PACKAGES:
        shutil.copytree(lab.ROOT / package, tmp_path / package, ignore=skip)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    text = (
        lab.SMALL.partition("flows:")[0]
        + "hosts: {overhead: none}\ntraffic:\n  - {kind: beat, from: s1, to: d1, beats: 5}\n"
    )
    (tmp_path / "experiment.yml").write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", USE, tmp_path], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert '"app": "beat"' in done.stdout and '"beaten": 5' in done.stdout
