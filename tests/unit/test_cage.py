# SPDX-License-Identifier: Apache-2.0
"""Where the cage cannot be had: what was asked of it is obeyed, and a run without it says so."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import Any, cast

import pytest

from analysis.verdict import Evidence, _cage
from hosts.virtual import boot

# a user namespace of its own whose limit on mount namespaces is zero: unshare(2) fails in it, whoever asks
NO_NAMESPACES = [
    "unshare",
    "--user",
    "--map-root-user",
    "sh",
    "-c",
    'echo 0 >/proc/sys/user/max_mnt_namespaces && exec "$@"',
    "sh",
]
NO_CAGE = 3


def uncaged(folder: Path) -> subprocess.CompletedProcess[str]:
    line = [*NO_NAMESPACES, *boot.caged(0, folder, ["/bin/echo", "started"])]
    return subprocess.run(line, capture_output=True, text=True, env=boot.environment(), timeout=60, check=False)


def test_a_cage_that_is_required_and_cannot_be_had_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARPBED_CAGE", "required")
    done = uncaged(tmp_path)
    assert (done.returncode, done.stdout) == (NO_CAGE, ""), done.stderr


def test_a_run_without_a_cage_is_suspect_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WARPBED_CAGE", raising=False)
    done = uncaged(tmp_path)
    assert done.stdout == "started\n" and done.stderr.startswith("cage: ")
    nothing = cast("Any", None)
    [reason] = _cage(Evidence(nothing, {}, tmp_path, done.stderr + done.stdout))
    assert (reason.rule, reason.severity) == ("uncaged", "warning")
    assert list(_cage(Evidence(nothing, {}, tmp_path, "Linux version 7.2\ncagey\n"))) == []


def test_no_other_variable_of_the_caller_reaches_the_guest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPBED_CAGE", "required")
    monkeypatch.setenv("LD_PRELOAD_OF_THE_USER", "x")
    assert set(boot.environment()) == {*boot.ENVIRONMENT, "WARPBED_CAGE", "WARPBED_STARTER"}


def test_the_program_sees_no_more_than_the_fixed_variables(tmp_path: Path) -> None:
    done = subprocess.run(
        boot.caged(0, tmp_path, ["/usr/bin/env"]),
        capture_output=True, text=True, env=boot.environment(), timeout=60, check=False,
    )  # fmt: skip
    names = {line.partition("=")[0] for line in done.stdout.splitlines()}
    assert names - {"LC_CTYPE"} == set(boot.ENVIRONMENT), done.stderr


def test_a_cage_whose_starter_was_killed_before_it_could_look_starts_nothing(tmp_path: Path) -> None:
    """Python takes its time to start: a command that is killed meanwhile would leave its guest running for ever."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    done = subprocess.run(
        boot.caged(0, tmp_path, ["/bin/echo", "started"]),
        capture_output=True, text=True, env={**boot.environment(), boot.STARTER: str(gone.pid)}, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, ""), done.stderr
