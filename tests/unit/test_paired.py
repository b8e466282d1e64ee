# SPDX-License-Identifier: Apache-2.0
"""The paired benchmark runs each command in both checkouts, and counts what they cost."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from base.paths import ROOT
from benchmarks import paired
from testbed.experiments import prepare


def test_check_costs_something_in_each_checkout(tmp_path: Path) -> None:
    seconds = paired.measure("check", {"here": ROOT, "other": ROOT}, 1, tmp_path)
    assert [len(values) for values in seconds.values()] == [1, 1]
    assert all(0.05 < value < 60 for values in seconds.values() for value in values)


def test_a_command_that_fails_is_no_measurement(tmp_path: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        paired.cpu_s(["check", str(tmp_path / "nothing.yml")], ROOT)


def test_checkouts_take_turns_and_repetitions_have_results_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[tuple[str, str]] = []

    def noted(command: list[str], checkout: Path) -> float:
        called.append((checkout.name, command[-1].rpartition("/")[2]))
        return float(len(called))

    monkeypatch.setattr(paired, "cpu_s", noted)
    seconds = paired.measure("60 s at 100 Mbit/s", {"here": Path("/a"), "other": Path("/b")}, 2, tmp_path)
    assert seconds == {"here": [1.0, 3.0], "other": [2.0, 4.0]}
    assert called == [("a", "results-1"), ("b", "results-1"), ("a", "results-2"), ("b", "results-2")]


def test_every_run_is_an_experiment_without_findings_of_weight(tmp_path: Path) -> None:
    for name in paired.RUNS:
        assert prepare(paired.experiment(name, tmp_path)).errors == []
