# SPDX-License-Identifier: Apache-2.0
"""The lab machine's Python keeps what it has compiled out of zip files, and runs nothing but what they say."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests import lab

PROGRAM = "import sys; sys.path[:0] = ['modules.zip', '.']; import kept_code, told; print(told.WORD)"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(lab.ROOT / "tests/lab_machine/kept_code.py", tmp_path)
    (tmp_path / "kept_code.d").mkdir()
    return tmp_path


def said(folder: Path, word: str) -> str:
    """What the machine's Python prints of a zip file whose module says a word."""
    with zipfile.ZipFile(folder / "modules.zip", "w") as archive:
        archive.writestr("told.py", f"WORD = {word!r}\n")
    done = subprocess.run(
        ["/usr/bin/python3", "-c", PROGRAM], cwd=folder, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


def test_a_changed_source_is_compiled_anew_and_the_same_one_is_not(folder: Path) -> None:
    assert [said(folder, word) for word in ("one", "one", "two", "one")] == ["one", "one", "two", "one"]
    assert len(list((folder / "kept_code.d").iterdir())) == 2
    first, second = sorted((folder / "kept_code.d").iterdir(), key=lambda file: file.stat().st_mtime_ns)
    shutil.copy(second, first)  # were it compiled again, what is kept would not be asked
    assert said(folder, "one") == "two"


def test_what_a_crash_has_left_half_written_is_compiled_anew(folder: Path) -> None:
    said(folder, "one")
    (kept,) = (folder / "kept_code.d").iterdir()
    whole = kept.read_bytes()
    for half in (b"", whole[: len(whole) // 2]):
        kept.write_bytes(half)
        assert said(folder, "one") == "one"
        assert kept.read_bytes() == whole
