# SPDX-License-Identifier: Apache-2.0
"""One version, wherever it stands."""

from __future__ import annotations

import re

from base.paths import ROOT
from base.version import VERSION
from tests import lab


def test_the_command_prints_the_version() -> None:
    assert lab.warpbed("--version") == f"warpbed {VERSION}\n"


def test_every_file_that_states_the_version_states_this_one() -> None:
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest and newest[1] == VERSION
    for file in ("CITATION.cff", "collectors/pcap/Cargo.toml", "collectors/pcap/pyproject.toml"):
        stated = re.search(r'^version(?: =|:) "?([\d.]+)"?$', (ROOT / file).read_text(), re.MULTILINE)
        assert stated and stated[1] == VERSION, file
