# SPDX-License-Identifier: Apache-2.0
"""ansible-lint and yamllint have nothing to say."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from base.paths import ROOT
from tests.plays import BIN


def test_ansible_lint_finds_nothing_in_its_production_profile(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{BIN}:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "ANSIBLE_HOME": str(tmp_path)}
    done = subprocess.run(
        ["ansible-lint", "-q"], check=False, capture_output=True, text=True, cwd=ROOT, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_yamllint_finds_nothing() -> None:
    done = subprocess.run([BIN / "yamllint", "--strict", "."], check=False, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout
