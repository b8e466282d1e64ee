# SPDX-License-Identifier: Apache-2.0
"""Which run folders `store load` finds below a path."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from store import folder
from store.errors import StoreUsageError


def made(results: Path, *names: str) -> None:
    for name in names:
        (results / name).mkdir(parents=True)
        (results / name / "run.json").write_text("{}")


def test_runs_are_found_up_to_two_folders_below_and_none_that_is_hidden(tmp_path: Path) -> None:
    made(tmp_path, "b/s1", "a/s2", "a/s1", "alone", ".aside/x", "a/.s3", "a/s1/raw/deep")
    (tmp_path / "notes").write_text("a file")
    found = [str(run.relative_to(tmp_path)) for run in folder.find(tmp_path)]
    assert found == ["a/s1", "a/s2", "alone", "b/s1"]
    assert folder.find(tmp_path / "a/s1") == [tmp_path / "a/s1"]


def test_a_folder_that_another_command_removes_meanwhile_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path, "kept/s1", "goes/s1")
    listdir = os.listdir

    def removed_first(path: Path) -> list[str]:
        if path == tmp_path / "goes":
            (path / "s1/run.json").unlink()
            (path / "s1").rmdir()
            path.rmdir()
        return listdir(path)

    monkeypatch.setattr(os, "listdir", removed_first)
    assert folder.find(tmp_path) == [tmp_path / "kept/s1"]


def test_no_run_and_a_folder_that_cannot_be_read_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StoreUsageError, match=r"no run\.json here or up to two folders below"):
        folder.find(tmp_path / "none")

    def denied(path: Path) -> list[str]:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "listdir", denied)
    with pytest.raises(StoreUsageError, match=f"^{tmp_path}: Permission denied; let your user read it"):
        folder.find(tmp_path)
