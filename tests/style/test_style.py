# SPDX-License-Identifier: Apache-2.0
"""The style checks pass."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path, PurePath

import pytest

from base.cache import sha256_of
from base.paths import cache_dir
from tests import lab, remembered

pytestmark = pytest.mark.timeout(1000)  # on a machine that does much else
TYPED = ["."]
LIMIT = 120
"""line-length in pyproject.toml."""
LONGER = re.compile(r'^ *#|"[^"]{60,}"')


def tool(name: str, *arguments: str | Path) -> str:
    """What a tool complains of."""
    done = subprocess.run(
        [Path(sys.executable).parent / name, *arguments],
        capture_output=True,
        text=True,
        cwd=lab.ROOT,
        timeout=900,
        check=False,
    )
    return done.stdout + done.stderr if done.returncode else ""


def test_ruff_finds_nothing() -> None:
    assert tool("ruff", "check", ".") == ""


def test_ruff_format_would_change_nothing() -> None:
    assert tool("ruff", "format", "--check", ".") == ""


def test_no_line_over_the_formatters_limit_is_hidden_from_it() -> None:
    """Tables that `# fmt: skip` keeps have lines like others: longer are comments, messages and SQL (pyproject.toml)."""
    hidden = []
    for name in remembered.contents(lambda file: file.suffix == ".py"):
        text = (lab.ROOT / name).read_text()
        lines = text.splitlines()
        if "# fmt: skip" not in text:
            continue
        for statement in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.stmt)):
            first, last = statement.lineno - 1, statement.end_lineno or statement.lineno
            if lines[last - 1].endswith("# fmt: skip") and not hasattr(statement, "body"):
                code = enumerate((line.removesuffix("# fmt: skip").rstrip() for line in lines[first:last]), first + 1)
                hidden += [f"{name}:{n}" for n, line in code if len(line) > LIMIT and not LONGER.search(line)]
    assert hidden == []


def read_by_mypy(file: PurePath) -> bool:
    return file.suffix in {".py", ".pyi"} or file.name in {"pyproject.toml", "py.typed"}


def test_mypy_finds_nothing() -> None:
    known = cache_dir() / "mypy"  # of modules that have not changed
    command = ("mypy", *TYPED)
    assert (
        remembered.complaints(command, remembered.contents(read_by_mypy), lambda: tool(*command, "--cache-dir", known))
        == ""
    )


def test_mypy_is_really_asked(tmp_path: Path) -> None:
    """Of a file that no answer is known of."""
    file = tmp_path / "wrong.py"
    file.write_text("def f() -> int:\n    return ''\n")
    read = {"wrong.py": sha256_of(file)}
    for _ in range(2):
        complaints = remembered.complaints(
            ["mypy", str(tmp_path)], read, lambda: tool("mypy", "--cache-dir", tmp_path / "c", file)
        )
        assert "Incompatible return value" in complaints


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
