# SPDX-License-Identifier: Apache-2.0
"""The style checks pass."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import lab

pytestmark = pytest.mark.timeout(1000)  # on a machine that does much else
TYPED = ["."]


def tool(name: str, *arguments: str) -> None:
    done = subprocess.run(
        [Path(sys.executable).parent / name, *arguments],
        capture_output=True,
        text=True,
        cwd=lab.ROOT,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_ruff_finds_nothing() -> None:
    tool("ruff", "check", ".")


def test_ruff_format_would_change_nothing() -> None:
    tool("ruff", "format", "--check", ".")


def test_mypy_finds_nothing() -> None:
    tool("mypy", *TYPED)


def test_every_source_file_names_its_licence() -> None:
    files = subprocess.run(["git", "ls-files"], capture_output=True, text=True, cwd=lab.ROOT, check=True).stdout.split()
    checked = [
        file
        for file in files
        if Path(file).suffix in {".py", ".c", ".h", ".sh", ".yml", ".rs", ".patch", ".js", ".css"}
    ]
    assert len(checked) > 100
    silent = [file for file in checked if "SPDX-License-Identifier" not in (lab.ROOT / file).read_text()[:400]]
    assert silent == []
