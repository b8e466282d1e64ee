# SPDX-License-Identifier: Apache-2.0
"""benchmarks.ns2: what is asked of ns-2, the table, and its place in docs/reproduction.md."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from benchmarks import ns2

STAND_IN = """#!/bin/sh
echo "$@" >>"{asked}"
echo "$3"      # the seed
"""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in place of ns-2, and the file with what it was called with."""
    program, file = tmp_path / "ns", tmp_path / "asked"
    program.write_text(STAND_IN.format(asked=file))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return file


def test_a_row_has_the_thesis_window_and_ns2s_means(asked: Path) -> None:
    lines = list(ns2.table(3, (25, 50), jobs=1))
    assert [line.split(" | ")[:3] for line in lines[2:]] == [
        ["| 25", "62.8", "2.0 (1.0 to 3.0)"],
        ["| 50", "218.9", "2.0 (1.0 to 3.0)"],
    ]
    calls = asked.read_text().splitlines()
    assert len(calls) == 3 * 2 * len(ns2.OVERHEADS_S)
    assert calls[0] == f"{ns2.SCRIPT} 25 1 32 0.0 500"


def test_the_page_has_a_place_for_the_table() -> None:
    assert len(ns2.MARK.findall(ns2.PAGE.read_text())) == 1


@pytest.mark.skipif(shutil.which("ns") is None, reason="ns-2 is not installed")
def test_windows_in_ns2_grow_by_a_packet_in_two_round_trips() -> None:
    """From 32 packets on, 0.44 s each, as long as nothing waits or is lost: 22.7 packets in 20 s."""
    grown = ns2.window(400, 1, 0.0, 60) - ns2.window(400, 1, 0.0, 40)
    assert grown == pytest.approx(20 / 0.88, rel=0.02)
