# SPDX-License-Identifier: Apache-2.0
"""ansible-lint and yamllint have nothing to say."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path, PurePath

from base.paths import ROOT
from tests import remembered
from tests.plays import BIN


def read_by_ansible_lint(file: PurePath) -> bool:
    return (
        file.parts[0] in {"playbooks", "inventory"}
        or file.suffix in {".yml", ".yaml", ".j2", ".cfg", ".toml"}
        or file.name[0] == "."
    )


def test_ansible_lint_finds_nothing_in_its_production_profile(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{BIN}:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "ANSIBLE_HOME": str(tmp_path)}

    def ask() -> str:
        done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT, env=environment)
        return done.stdout + done.stderr if done.returncode else ""

    command = ["ansible-lint", "-q"]
    assert remembered.complaints(command, remembered.contents(read_by_ansible_lint), ask) == ""


def test_yamllint_finds_nothing() -> None:
    done = subprocess.run([BIN / "yamllint", "--strict", "."], check=False, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout
