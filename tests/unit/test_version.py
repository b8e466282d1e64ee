# SPDX-License-Identifier: Apache-2.0
"""One version, wherever it stands."""

from __future__ import annotations

import re
import subprocess
import sys

from base.paths import ROOT
from base.version import VERSION
from testbed import cli
from tests import lab


def test_the_command_prints_the_version() -> None:
    assert lab.warpbed("--version") == f"warpbed {VERSION}\n"


def test_a_command_loads_only_what_it_needs() -> None:
    program = (
        "import sys; from testbed import cli; cli.parser(['check']); "
        "print([m for m in ('matplotlib', 'testbed.commands.campaign') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_command_of_the_list_has_its_file() -> None:
    files = {file.stem for file in (ROOT / "testbed/commands").glob("*.py")}
    assert set(cli.COMMANDS.values()) <= files
    assert len(cli.parser().format_help().splitlines()) > len(cli.COMMANDS)


def test_every_file_that_states_the_version_states_this_one() -> None:
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest and newest[1] == VERSION
    for file in ("CITATION.cff", "collectors/pcap/Cargo.toml", "collectors/pcap/pyproject.toml"):
        stated = re.search(r'^version(?: =|:) "?([\d.]+)"?$', (ROOT / file).read_text(), re.MULTILINE)
        assert stated and stated[1] == VERSION, file
