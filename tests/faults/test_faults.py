# SPDX-License-Identifier: Apache-2.0
"""Whichever call to the kernel fails, no run is lost, doubled or half visible, and the next command completes it.

A part of the calls here; `python -m tests.faults.whole` goes through all of them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from base.files import aside_name
from base.paths import ROOT
from testbed.results import ASIDE
from tests.faults import loop
from tests.faults.forks import forked
from tests.faults.registry import COMMANDS, ON_SOCKETS
from tests.faults.reproducing import Reproduce

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("cc") is None, reason="not installed: cc (build-essential)"),
]
CALLS_OF_A_CASE = 400
REPETITIONS = 6


def repeated(folder: Path, case: str, error: str, *more: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "tests.faults.loop", case, folder, error, *more],
        env=loop.preloaded(folder, case),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    outcome: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return outcome


@pytest.mark.parametrize(
    ("case", "error", "more"),
    [
        ("transfer", "ENOSPC", ["--first", "11"]),
        ("transfer", "EIO", ["--first", "65", "--stays"]),
        ("collect", "SHORT", ["--first", "11"]),
        ("run", "EIO", ["--first", "37"]),
        ("run", "ENOSPC", ["--first", "101", "--stays"]),
        ("reproduce", "EIO", ["--first", "11"]),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_no_run_is_lost_doubled_or_half_there_whichever_call_fails(
    tmp_path: Path, case: str, error: str, more: list[str]
) -> None:
    step = CALLS_OF_A_CASE // REPETITIONS
    outcome = repeated(tmp_path, case, error, *more, "--step", str(step), "--most", str(REPETITIONS))
    assert outcome["faults"] >= REPETITIONS - 1, "the case makes fewer calls than it did: choose other numbers"
    assert outcome["violations"] == []


def disturbed(program: str, case: str, *words: str) -> str:
    """What the program prints of the case; it found nothing wrong."""
    if case in ON_SOCKETS and os.geteuid():
        pytest.skip("a database of its own needs root (chroot)")
    done = subprocess.run(
        [sys.executable, "-P", "-m", f"tests.faults.{program}", "--case", case, "--seed", "1", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("case", COMMANDS)
def test_killed_at_any_moment_a_command_leaves_nothing_and_the_next_completes_it(case: str) -> None:
    assert re.fullmatch(rf"{case}: 2 kills, [012] running, 0 violations\n", disturbed("killing", case, "--kills", "2"))


@pytest.mark.parametrize("case", COMMANDS)
def test_given_twice_at_once_a_command_is_done_once(case: str) -> None:
    assert re.fullmatch(rf"{case}: 3 times, [0-3] refused, 0 violations\n", disturbed("together", case, "--times", "3"))


@pytest.mark.skipif(os.geteuid() != 0, reason="a database of its own needs root (chroot)")
def test_no_run_is_half_in_the_store_whichever_call_or_message_fails(tmp_path: Path) -> None:
    outcome = repeated(tmp_path, "store load", "EIO", "--first", "23", "--step", "150", "--most", "6")
    assert outcome["faults"] >= 5 and outcome["violations"] == []


def test_the_loop_finds_a_command_that_names_a_run_before_it_is_whole(tmp_path: Path) -> None:
    outcome = repeated(tmp_path, "broken", "ENOSPC")
    assert outcome["passed_whole"] and outcome["faults"] > 5
    assert any("half there" in text for text in outcome["violations"])


@pytest.mark.parametrize("before", ["none", "older"])
def test_reproduce_writes_the_report_that_a_killed_one_owes_and_clears_what_that_left(
    tmp_path: Path, before: str
) -> None:
    """Killed while it wrote the report of its last runs, which are whole: no run is missing, and still there is something to do."""
    case = Reproduce(tmp_path / "data")
    case.prepare()
    assert forked(case.work)[0] == 0 and case.check(whole=True, settled=True) == []
    report = case.results / "faulty/report.html"
    written = report.read_text()
    if before == "none":
        report.unlink()
    else:
        report.write_text("of fewer runs")
        os.utime(report, (0, 0))
    report.with_name(aside_name(report.name)).write_text("half a rep")
    (case.results / ASIDE).mkdir()
    (case.results / ASIDE / f"{'0' * 32}.lock").touch()
    assert len(case.check(whole=False, settled=True)) == 2
    assert forked(case.work)[0] == 0 and case.check(whole=True, settled=True) == []
    assert report.read_text() == written
    os.utime(report, (2**31, 2**31))
    kept = report.stat().st_mtime_ns
    assert forked(case.work)[0] == 0 and report.stat().st_mtime_ns == kept, "one that is newer than its runs stays"
