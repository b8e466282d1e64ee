# SPDX-License-Identifier: Apache-2.0
"""Guests of the differential tests: the same scenarios give the same bytes, so what one wrote stands for the next."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path

import pytest

from hosts.virtual.launch import GuestKernel
from tests.harness import harness, kept
from tests.harness.harness import Flow, Scenario
from tests.kept_results import FRESH

LOSSY = Scenario((Flow("reno"),), seconds=4.0, loss_percent=1.0, trace=False, capture=True)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache for guests alone."""
    monkeypatch.setattr(kept, "cache_dir", lambda: tmp_path)
    return tmp_path


def no_guest(*_: object, **__: object) -> None:
    raise AssertionError("a guest was started")


def test_the_same_scenario_gives_the_same_bytes(
    kernel: GuestKernel, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FRESH, "1")
    first, second = harness.run(kernel, LOSSY), harness.run(kernel, LOSSY)
    assert len(first.capture) > 50_000
    assert first == second


def test_a_guest_that_has_run_is_not_started_again(
    kernel: GuestKernel, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = harness.run(kernel, LOSSY)
    monkeypatch.setattr(subprocess, "run", no_guest)
    assert harness.run(kernel, LOSSY) == first
    with pytest.raises(AssertionError, match="a guest was started"):
        harness.run(kernel, dataclasses.replace(LOSSY, seed=2))
    monkeypatch.setenv(FRESH, "1")
    with pytest.raises(AssertionError, match="a guest was started"):
        harness.run(kernel, LOSSY)


def test_a_guest_is_known_by_its_modules_and_programs(
    kernel: GuestKernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tcp_zeta.ko").write_bytes(b"one")
    line = [str(kernel.linux), f"wb_out={tmp_path}"]
    before = kept.key(line, tmp_path)
    (tmp_path / "tcp_zeta.ko").write_bytes(b"two")
    changed = kept.key(line, tmp_path)
    monkeypatch.setattr(kept, "PROGRAMS", kept.PROGRAMS[1:])
    assert len({before, changed, kept.key(line, tmp_path), kept.key([*line, "quiet"], tmp_path)}) == 4
