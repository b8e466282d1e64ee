# SPDX-License-Identifier: Apache-2.0
"""`./warpbed cache`: only what nothing used for long goes, and what comes after a kill -9 is cleaned as well."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from base.cache import locked, used
from kernels import upkeep
from testbed import cli

DAY = 86400


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One old and one new entry of each kind, among files that are no entries."""
    monkeypatch.setenv("WARPBED_CACHE", str(tmp_path))
    for kind in upkeep.KINDS:
        for name, days in (("old", 40), ("new", 1)):
            entry = tmp_path / kind / name
            (entry / "deep").mkdir(parents=True)
            (entry / "deep" / "file").write_bytes(b"x" * 1000000)
            then = time.time() - days * DAY
            os.utime(entry, (then, then))
    (tmp_path / "venv" / "old.lock").touch()
    (tmp_path / "kernels" / ".logs").mkdir()
    return tmp_path


def entries(cache: Path) -> set[str]:
    return {str(entry.path.relative_to(cache)) for entry in upkeep.entries(cache)}


def test_lists_each_entry_with_size_and_idle_time(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["cache", "list", "--format", "json"]) == 0
    rows = {row["entry"]: row for row in json.loads(capsys.readouterr().out)}
    assert set(rows) == {f"{kind}/{name}" for kind in upkeep.KINDS for name in ("old", "new")}
    assert rows["venv/old"]["idle_days"] == 40.0
    assert rows["venv/old"]["MB"] == pytest.approx(1, abs=0.1)


def test_prune_removes_the_unused_and_nothing_else(cache: Path) -> None:
    assert cli.main(["cache", "prune", "--dry-run"]) == 0
    assert len(entries(cache)) == 2 * len(upkeep.KINDS)
    assert cli.main(["cache", "prune"]) == 0
    assert entries(cache) == {f"{kind}/new" for kind in upkeep.KINDS}
    assert (cache / "kernels" / ".logs").is_dir()
    assert (cache / "venv" / "old.lock").exists()
    assert not list(cache.rglob(".aside-*"))


def test_an_entry_in_use_stays(cache: Path) -> None:
    used(cache / "native" / "old")
    with locked(cache / "vm" / ".locks" / "old"):
        assert cli.main(["cache", "prune", "--unused-for", "30"]) == 0
    assert {"native/old", "vm/old"} <= entries(cache)


def test_what_a_killed_prune_left_goes_with_the_next_one(cache: Path) -> None:
    (cache / "kernels" / "old").rename(cache / "kernels" / ".aside-old")
    assert cli.main(["cache", "prune"]) == 0
    assert not (cache / "kernels" / ".aside-old").exists()


@pytest.mark.parametrize("days", ["-1", "soon", "nan", "1e9"])
def test_bad_days_name_the_value_and_remove_nothing(cache: Path, days: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["cache", "prune", f"--unused-for={days}"])
    assert caught.value.code == 2
    assert days in capsys.readouterr().err
    assert len(entries(cache)) == 2 * len(upkeep.KINDS)


def test_the_environment_that_runs_this_is_marked_as_used() -> None:
    root = Path(cli.__file__).parents[1]
    before = time.time() - 5
    subprocess.run([root / "warpbed", "exec", "true"], check=True, capture_output=True, timeout=120)
    if sys.prefix == sys.base_prefix:
        pytest.skip("not started through ./warpbed")
    assert Path(sys.prefix).stat().st_mtime > before
