# SPDX-License-Identifier: Apache-2.0
"""The packet collector's build: its key, its compiler, what is said when it fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors import native
from collectors.errors import NativeError


def script(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)
    return folder


def compiler(folder: Path, version: str) -> Path:
    """A folder with a cargo and a rustc that only say their version."""
    for name in ("cargo", "rustc"):
        script(folder, name, f"echo '{name} {version} (0123456 2025-01-01)'")
    return folder


def test_an_old_cargo_is_passed_over_for_a_newer_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = compiler(tmp_path / "old", "1.63.0"), compiler(tmp_path / "new", "1.85.0")
    monkeypatch.setenv("PATH", f"{old}:{new}")
    assert native.find_cargo() == new / "cargo"


def test_without_a_new_enough_cargo_the_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(compiler(tmp_path, "1.63.0")))
    with pytest.raises(NativeError, match=r"1\.85 or newer \(.*cargo is 1\.63\).*apt-get install .* cargo"):
        native.find_cargo()
    monkeypatch.setenv("PATH", str(script(tmp_path, "cargo", "echo no toolchain >&2; exit 1")))
    with pytest.raises(NativeError, match="not usable"):
        native.find_cargo()


def test_a_cache_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("WARPBED_CACHE", str(tmp_path / "file"))
    with pytest.raises(NativeError, match="WARPBED_CACHE sets another"):
        native.folder()
