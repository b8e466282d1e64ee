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
    lines = list(ns2.windows(3, 1, (25, 50)))
    assert [line.split(" | ")[:3] for line in lines[2:]] == [
        ["| 25", "62.8", "2.0 (1.0 to 3.0)"],
        ["| 50", "218.9", "2.0 (1.0 to 3.0)"],
    ]
    calls = asked.read_text().splitlines()
    assert len(calls) == 3 * 2 * 2
    assert calls[0] == f"{ns2.PARKING_LOT} 25 1 32 0.0 500"


def test_a_row_has_what_transfers_deliver(asked: Path) -> None:
    """The stand-in prints the third of its arguments, the seed; ns-2 prints connections first."""
    program = asked.parent / "ns"
    program.write_text(program.read_text().replace('echo "$3" ', 'echo 600 "$3" "$4" '))
    assert list(ns2.transfers(2, 1, (5, 40)))[2:] == ["| 5 ms | 2 | 5 | 2 | 5 |", "| 40 ms | 2 | 40 | 2 | 40 |"]


def test_a_row_has_what_starts_deliver_over_reno(asked: Path) -> None:
    """The stand-in delivers a number of packets by the start: 100 for Reno, 98 for JS, 104 and 103 for the others."""
    program = asked.parent / "ns"
    known = 'case "$7" in reno) echo 1 1 100;; js) echo 1 1 98;; liss) echo 1 1 104;; *) echo 1 1 103;; esac'
    program.write_text(program.read_text().replace('echo "$3" ', known))
    row = " | ".join(["1.040 to 1.040", "1.030 to 1.030", "0.980 to 0.980"] * 2)
    assert list(ns2.starts(2, 1, (5,)))[2:] == [f"| 5 ms | {row} |"]
    calls = asked.read_text().splitlines()
    assert len(calls) == 2 * 2 * 4
    assert calls[0] == f"{ns2.STAR} 20 1 5 0.0 3000 reno"


def test_the_page_has_a_place_for_each_table() -> None:
    page = ns2.PAGE.read_text()
    for name in ns2.TABLES:
        assert len(ns2.mark(name).findall(page)) == 1
        assert ns2.put(page, name, ["| a |", "|---|"]).count("| a |\n|---|\n<!-- end -->") == 1


@pytest.mark.skipif(shutil.which("ns") is None, reason="ns-2 is not installed")
def test_windows_in_ns2_grow_by_a_packet_in_two_round_trips() -> None:
    """From 32 packets on, 0.44 s each, as long as nothing waits or is lost: 22.7 packets in 20 s."""
    grown = ns2.window(400, 1, 0.0, 60) - ns2.window(400, 1, 0.0, 40)
    assert grown == pytest.approx(20 / 0.88, rel=0.02)
