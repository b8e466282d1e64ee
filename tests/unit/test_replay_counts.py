# SPDX-License-Identifier: Apache-2.0
"""Counts of replays, and docs/virtual-time.md, whose table says what benchmarks/replays.json holds."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks import golden, replay_counts
from benchmarks.conditions import CONDITIONS
from benchmarks.replay import HOW

OLD, NEW = "linux 6.1.9-1, iperf3 3", "linux 6.12.3-1, iperf3 3"


def test_the_page_says_what_was_counted() -> None:
    text = replay_counts.PAGE.read_text()
    lines = replay_counts.table(replay_counts.read(), golden.all_known(), HOW)
    assert replay_counts.page(text, lines) == text, "python -m benchmarks.replay --page"


def test_conditions_have_names_of_their_own() -> None:
    assert len(HOW) == len(CONDITIONS)


def test_counts_add_up_and_are_shown_by_condition_and_kernel(tmp_path: Path) -> None:
    file = tmp_path / "counts.json"
    for kind in ("same", "same", "differing"):
        replay_counts.add(file, NEW, "losses", "plain", "abc", kind)
    replay_counts.add(file, NEW, "aqm", "busy CPU", "def", "failed")
    replay_counts.add(file, OLD, "aqm", "plain", "123", "same")
    counts = json.loads(file.read_text())
    lines = list(
        replay_counts.table(counts, {NEW: {"losses": "abc", "aqm": "def"}, OLD: {"aqm": "123"}}, ["plain", "busy CPU"])
    )
    assert lines[0] == "| replays of the golden runs | Linux 6.1.9-1 | Linux 6.12.3-1 |"
    assert lines[2:5] == [
        "| plain | 1, none differs | 3, 1 differs |",
        "| busy CPU | – | 0, none differs, 1 more failed |",
        "| all | 1, none differs | 3, 1 differs, 1 more failed |",
    ]


def test_other_packets_in_the_repository_begin_a_count_anew(tmp_path: Path) -> None:
    file = tmp_path / "counts.json"
    replay_counts.add(file, NEW, "losses", "plain", "abc", "same")
    replay_counts.add(file, NEW, "aqm", "plain", "def", "same")
    known = {"losses": "new", "aqm": "def"}
    runs = replay_counts.valid(replay_counts.read(file), NEW, known)
    assert replay_counts.total(runs, "same") == 1
    replay_counts.add(file, NEW, "losses", "plain", "new", "same")
    assert replay_counts.total(replay_counts.valid(replay_counts.read(file), NEW, known), "same") == 2
    assert "abc" not in file.read_text()


def test_what_was_tried_least_often_comes_next(tmp_path: Path) -> None:
    file = tmp_path / "counts.json"
    known = {"losses": "abc", "aqm": "def"}
    for name, condition in (("losses", "plain"), ("losses", "busy CPU"), ("aqm", "busy CPU")):
        replay_counts.add(file, NEW, name, condition, known[name], "same")
    runs = replay_counts.valid(replay_counts.read(file), NEW, known)
    assert replay_counts.rarest(runs, ["plain", "busy CPU"]) == [("aqm", "plain")]
