# SPDX-License-Identifier: Apache-2.0
"""What is left of runs goes, and nobody waits for runs that others are making."""

from __future__ import annotations

from pathlib import Path

import pytest

from base.watcher import BY_ITSELF
from testbed import janitor
from testbed.results import ASIDE, Results

LEFT = "0" * 32


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long the janitor has waited, each time."""
    waited: list[float] = []
    monkeypatch.setattr("testbed.janitor.time.sleep", waited.append)
    return waited


def test_a_runner_that_came_to_its_end_does_not_wait_for_the_runs_of_others(tmp_path: Path, waits: list[float]) -> None:
    """Of twenty workers that share a folder of results one always makes a run; each waited ten seconds for it after each of its own."""
    with Results(tmp_path, "small").aside() as others:
        janitor.clean_up(str(tmp_path), BY_ITSELF)
        assert others.is_dir()
    assert waits == []


def test_where_a_runner_was_killed_its_processes_are_waited_for(tmp_path: Path, waits: list[float]) -> None:
    with Results(tmp_path, "small").aside():  # as one that dies holds it for a moment yet
        janitor.clean_up(str(tmp_path), "")
    assert len(waits) == janitor.ATTEMPTS


@pytest.mark.parametrize("ended", [BY_ITSELF, ""])
def test_what_nobody_holds_goes_at_once(tmp_path: Path, waits: list[float], ended: str) -> None:
    (tmp_path / ASIDE / LEFT).mkdir(parents=True)
    (tmp_path / ASIDE / f"{LEFT}.lock").touch()
    janitor.clean_up(str(tmp_path), ended)
    assert not (tmp_path / ASIDE).exists() and waits == []
