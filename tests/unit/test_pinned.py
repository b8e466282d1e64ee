# SPDX-License-Identifier: Apache-2.0
"""The guests' pinned user land: which one is taken, and that nothing but the pinned packages gets into it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from base.cache import sha256_of
from base.errors import UsageError, WarpbedError
from hosts.virtual import pinned, userland
from kernels import suite_packages


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and nothing asked for."""
    monkeypatch.setenv("WARPBED_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(pinned.SETTING, raising=False)
    return tmp_path / "cache"


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """The files that apt fetches, instead of fetching; both are pinned as they are."""
    debs = {name: tmp_path / f"{name}_1_all.deb" for name in ("one", "two")}
    for name, file in debs.items():
        file.write_text(name)
    rows = [[name, "1", sha256_of(file)] for name, file in debs.items()]
    (tmp_path / "lock.json").write_text(json.dumps({"suite": "bookworm", "packages": rows}))
    monkeypatch.setattr(pinned, "LOCK", tmp_path / "lock.json")
    monkeypatch.setattr(suite_packages, "download", lambda *_: sorted(debs.values()))
    monkeypatch.setattr(suite_packages, "unpack", lambda _, root: (root / "etc").mkdir())
    monkeypatch.setattr(suite_packages, "inside", lambda *_: "")
    return debs


def test_the_lock_names_each_package_once_with_its_hash() -> None:
    packages = pinned.pinned()
    assert len({package.name for package in packages}) == len(packages) > len(pinned.WANTED)
    assert all(re.fullmatch("[0-9a-f]{64}", package.sha256) for package in packages)
    assert {name for name in pinned.WANTED if name[0] != "?"} <= {package.name for package in packages}
    assert set(userland.PACKAGES) <= {package.name for package in packages}


def test_without_it_a_run_says_what_to_do(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WarpbedError, match=r"\./warpbed run builds it, WARPBED_USERLAND=host"):
        pinned.root()
    monkeypatch.setenv(pinned.SETTING, "host")
    assert pinned.root() is None and userland.userland() == userland.installed()
    monkeypatch.setenv(pinned.SETTING, "mine")
    with pytest.raises(UsageError, match="WARPBED_USERLAND is 'mine'; it can be pinned or host"):
        pinned.root()


def test_it_is_made_once_and_names_its_packages(
    cache: Path, fetched: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, changed = pinned.build()
    assert changed and folder == pinned.root() == cache / "userland" / pinned.key()
    assert pinned.versions(folder) == {"one": "1", "two": "1"}
    assert (folder / "warpbed/start.py").read_text() == pinned.START.read_text()
    assert pinned.build() == (folder, False)
    monkeypatch.setattr(pinned, "RECIPE", 0)
    assert pinned.place() != folder


@pytest.mark.parametrize(
    ("change", "message"),
    [("other", r"one_1_all\.deb is not the package that"), ("gone", "one: pinned, but not fetched")],
)
def test_another_file_than_the_pinned_one_is_refused(
    cache: Path, fetched: dict[str, Path], change: str, message: str
) -> None:
    if change == "other":
        fetched["one"].write_text("another")
    else:
        del fetched["one"]
    with pytest.raises(WarpbedError, match=message):
        pinned.build()
    assert not pinned.place().exists() and list(cache.glob("userland/[!.]*")) == []
