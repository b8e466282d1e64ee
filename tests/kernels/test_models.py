# SPDX-License-Identifier: Apache-2.0
"""Models of what the virtual host's one CPU cannot show: every interleaving of two CPUs, by the model checker SPIN."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

MODEL = Path(__file__).parents[1] / "models/cc_output.pml"


def check(folder: Path, *defines: str) -> tuple[int, int, str]:
    """Errors, states that were seen, and what the checker says."""
    if shutil.which("spin", path="/usr/bin") is None:
        pytest.skip("spin is not installed; playbooks/test_environment.yml installs it")
    folder.mkdir(exist_ok=True)
    commands = (
        ["spin", *defines, "-a", str(MODEL)],
        ["gcc", "-O2", "-DSAFETY", "-o", "pan", "pan.c"],
        ["./pan", "-m100000"],
    )
    output = "".join(
        subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout for command in commands
    )
    errors, states = re.search(r"errors: (\d+)", output), re.search(r"(\d+) states, stored", output)
    assert errors and states and "max search depth too small" not in output, output
    return int(errors[1]), int(states[1]), output


def test_the_stages_timer_and_the_sockets_owner_never_lose_or_double_a_reference(tmp_path: Path) -> None:
    errors, states, output = check(tmp_path / "new")
    assert errors == 0, output
    assert states > 1000


def test_the_model_sees_the_race_that_there_was(tmp_path: Path) -> None:
    """The timer that armed itself again while the owner did: two references, one expiry."""
    errors, _, output = check(tmp_path / "old", "-DOLD")
    assert errors > 0, output
