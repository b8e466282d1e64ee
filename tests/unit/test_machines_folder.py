# SPDX-License-Identifier: Apache-2.0
"""The folder that Warpbed uses on other people's machines (playbooks/files/place.py): nobody gets into it, and nothing else is removed."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path
from types import ModuleType

import pytest

from base.paths import ROOT


@pytest.fixture
def place(capsys: pytest.CaptureFixture[str]) -> ModuleType:
    spec = importlib.util.spec_from_file_location("place", ROOT / "playbooks/files/place.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def root(tmp_path: Path) -> Path:
    tmp_path.chmod(0o755)
    return tmp_path / "srv"


def refusal(place: ModuleType, root: Path, what: str = "make") -> str:
    with pytest.raises(SystemExit) as refused:
        place.main(what, str(root))
    return str(refused.value)


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_what_was_made_is_removed_with_the_folder(place: ModuleType, root: Path) -> None:
    place.main("make", str(root))
    assert names(root) == ["transfers", "transfers/.warpbed"]
    assert [folder.stat().st_mode & 0o777 for folder in (root, root / "transfers")] == [0o700, 0o700]
    (root / "agent-0a.pyz").touch()
    (root / "transfers/t.a1").mkdir()
    place.main("make", str(root))
    place.main("remove", str(root), "--check")
    assert (root / "agent-0a.pyz").exists() and (root / "transfers/t.a1").exists()
    place.main("remove", str(root))
    assert not root.exists()
    place.main("remove", str(root))


def test_an_owners_folder_stays_with_all_that_is_in_it_also_if_that_is_nothing(place: ModuleType, root: Path) -> None:
    root.mkdir(mode=0o755)
    place.main("make", str(root))
    place.main("remove", str(root))
    assert names(root) == [] and root.stat().st_mode & 0o777 == 0o755


def test_an_owners_transfers_are_neither_taken_nor_removed(
    place: ModuleType, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "transfers").mkdir(parents=True)
    (root / "transfers").chmod(0o755)
    (root / "transfers/tax-2025.pdf").write_text("years of work")
    (root / "agent-0a.pyz").touch()
    for what in ("look", "make"):
        assert "srv/transfers is there and is not Warpbed's" in refusal(place, root, what)
    place.main("remove", str(root))
    assert json.loads(capsys.readouterr().out)["left"] == [f"{root}/transfers"]
    assert names(root) == ["agent-0a.pyz", "transfers", "transfers/tax-2025.pdf"]
    assert (root / "transfers").stat().st_mode & 0o777 == 0o755


def test_transfers_that_are_a_link_are_not_followed(place: ModuleType, root: Path, tmp_path: Path) -> None:
    place.main("make", str(tmp_path / "other"))
    root.mkdir()
    (root / "transfers").symlink_to(tmp_path / "other/transfers")
    assert "is not Warpbed's" in refusal(place, root)
    place.main("remove", str(root))
    assert names(tmp_path / "other") == ["transfers", "transfers/.warpbed"]


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777])
def test_a_folder_that_others_may_write_is_refused(place: ModuleType, root: Path, mode: int) -> None:
    root.mkdir()
    root.chmod(mode)
    assert f"mode {mode:04o}" in refusal(place, root)
    assert names(root) == []


def test_a_folder_below_one_that_others_may_write_is_refused(place: ModuleType, root: Path) -> None:
    root.mkdir()
    root.chmod(0o777)
    for inner in (root / "there", root / "new"):
        assert f"{root} can be written by others (mode 0777)" in refusal(place, inner)
    root.with_name("link").symlink_to(root)
    assert f"{root} can be written by others (mode 0777)" in refusal(place, root.with_name("link") / "there")


def test_a_link_in_the_folders_place_is_refused(place: ModuleType, root: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    root.symlink_to(tmp_path / "elsewhere")
    assert "has to be a folder" in refusal(place, root)


def test_somebody_elses_folder_is_refused(place: ModuleType, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root.mkdir(mode=0o755)
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    assert f"user {user}" in refusal(place, root)


@pytest.mark.parametrize("path", ["srv", "../srv", "/srv/../etc"])
def test_a_path_that_depends_on_others_is_refused(place: ModuleType, path: str) -> None:
    assert "is not an absolute path" in refusal(place, Path(path))


def test_a_removal_that_was_killed_is_finished_by_the_next(place: ModuleType, root: Path) -> None:
    place.main("make", str(root))
    (root / "transfers").rename(root / ".transfers.77")
    place.main("make", str(root))
    place.main("remove", str(root))
    assert names(root) == []


def test_a_killed_removal_is_finished_by_a_removal_and_takes_the_folder_along(place: ModuleType, root: Path) -> None:
    new = root / "new"
    place.main("make", str(new))
    (new / "transfers/x").mkdir()
    (new / "transfers").rename(new / ".transfers.77")
    place.main("remove", str(new))
    assert not new.exists()


def test_a_link_named_like_what_was_left_is_not_followed(place: ModuleType, root: Path) -> None:
    (root / "owner").mkdir(parents=True)
    (root / "owner/file").write_text("theirs")
    (root / ".transfers.1").symlink_to("owner")
    place.main("remove", str(root))
    assert (root / "owner/file").read_text() == "theirs"
