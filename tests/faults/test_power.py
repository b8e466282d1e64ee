# SPDX-License-Identifier: Apache-2.0
"""Whenever the power is cut, a run is whole or not there, none is lost, and the next command completes the work."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from base.paths import ROOT
from tests.faults import power

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("cc") is None, reason="not installed: cc (build-essential)"),
]


def cut(folder: Path, case: str, *more: str) -> dict[str, Any]:
    line = [sys.executable, "-P", "-m", "tests.faults.power", case, str(folder), *more]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    outcome: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return outcome


@pytest.mark.parametrize("case", ["transfer", "collect", "run", "reproduce"])
def test_whenever_the_power_is_cut_nothing_is_lost_or_half_there(tmp_path: Path, case: str) -> None:
    outcome = cut(tmp_path, case, "--again", "25")
    assert outcome["synced"] > 5 and outcome["states"] == 2 * (outcome["operations"] + 1) and outcome["again"] > 1
    assert outcome["violations"] == []


def test_a_transfer_that_is_published_before_it_is_on_the_disk_is_found(tmp_path: Path) -> None:
    outcome = cut(tmp_path, "unsynced", "--again", "1000")
    assert any("was changed" in text for text in outcome["violations"])


def recorded(*records: tuple[str, str, str]) -> bytes:
    return b"".join(b"".join(word.encode() + b"\0" for word in record) for record in records)


def test_what_a_disk_holds_follows_from_what_was_synced(tmp_path: Path) -> None:
    """A file that is written aside, synced, and renamed over the old one; its folder is synced last."""
    box, copies = tmp_path / "box", tmp_path / "copies"
    box.mkdir()
    copies.mkdir()
    (box / "a").write_text("old")
    log = recorded(
        ("create", f"{box}/b", ""),
        ("sync", f"{box}/b", ""),
        ("rename", f"{box}/b", f"{box}/a"),
        ("syncdir", str(box), ""),
    )
    records = power.parsed(log)
    (copies / str(records[1][0])).write_text("new")
    before = power.Disk(box)
    calls = list(power.moments(power.Disk(box), records, copies))

    def held(count: int, *, all_names: bool) -> dict[str, str]:
        power.lay_down(before, calls[:count], all_names=all_names, target=tmp_path / "seen")
        return {file.name: file.read_text() for file in (tmp_path / "seen").iterdir()}

    assert [held(n, all_names=True) for n in range(5)] == [
        {"a": "old"},
        {"a": "old", "b": ""},
        {"a": "old", "b": "new"},
        {"a": "new"},
        {"a": "new"},
    ]
    assert [held(n, all_names=False) for n in range(5)] == [{"a": "old"}] * 4 + [{"a": "new"}]
