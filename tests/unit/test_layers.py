# SPDX-License-Identifier: Apache-2.0
"""Packages import downwards only, and what travels to a run's host needs nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from base.layers import PACKAGES, imports
from base.paths import ROOT, SENT_PACKAGES, sent_files

SYSTEM_PYTHON = "/usr/bin/python3"
LOAD_ALL = """
import importlib, sys
sys.path.insert(0, sys.argv[1])
for name in sys.argv[2:]:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name.partition(".")[0] != "mininet":
            raise
"""


def test_no_package_imports_from_one_above_it() -> None:
    upward = [f"{one.importer}:{one.line} imports {one.imported}" for one in imports() if one.is_upward]
    assert upward == []


def test_an_upward_import_is_seen_and_both_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "base").mkdir()
    (tmp_path / "store").mkdir()
    (tmp_path / "base/one.py").write_text("def f():\n    from store import two\n")
    (tmp_path / "store/two.py").write_text("")
    [seen] = [one for one in imports(tmp_path) if one.is_upward]
    assert (seen.importer, seen.line, seen.imported) == ("base/one.py", 2, "store/two.py")


def test_every_python_folder_at_the_top_has_its_layer() -> None:
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    folders = {line.partition("/")[0] for line in listed.splitlines()}
    assert folders - {"tests"} == set(PACKAGES)


def _python(version: str) -> str:
    """A Python of this version: the machine's, this environment's, one on the path, or one that pyenv keeps."""
    kept = (Path.home() / ".pyenv/versions").glob(f"{version}.*/bin/python")
    for python in (SYSTEM_PYTHON, sys.executable, shutil.which(f"python{version}"), *map(str, kept)):
        if python is not None and _version(python) == version:
            return python
    pytest.skip(f"this machine has no Python {version}")


def _version(python: str) -> str:
    said = subprocess.run(
        [python, "-I", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
        capture_output=True,
        text=True,
        check=False,
    )
    return said.stdout.strip()


@pytest.mark.parametrize("version", ["3.11", "3.13"])
def test_what_travels_to_a_host_imports_with_nothing_else_on_the_path(version: str, tmp_path: Path) -> None:
    """By Debian 12's Python and by Debian 13's."""
    python = _python(version)
    for file in sent_files():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    modules = [
        ".".join(file.with_suffix("").parts) for file in sent_files() if file.stem not in ("__init__", "__main__")
    ]
    assert {name.partition(".")[0] for name in modules} == set(SENT_PACKAGES)
    done = subprocess.run(
        [python, "-I", "-c", LOAD_ALL, str(tmp_path), *modules],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stderr
