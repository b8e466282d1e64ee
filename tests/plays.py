# SPDX-License-Identifier: Apache-2.0
"""How tests start a play of this checkout's playbooks by itself, without `./warpbed`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests import lab, recap

BIN = Path(sys.executable).parent
LONGEST_S = 800.0
"""Of a play, however busy the machine is: below the limit of a test, so that the play's own words are shown."""


def start(
    playbook: str,
    *arguments: str | Path,
    variables: Mapping[str, Any] | None = None,
    counted: bool = False,
    environment: Mapping[str, str] | None = None,
) -> subprocess.Popen[str]:
    """A play in a session of its own, so that a test may kill all of it at once; what both its outputs say is one text.

    counted: with Ansible's own output, which ends with how much each host was changed (tests.recap).
    environment: instead of this process's.
    """
    given = ["-e", json.dumps(variables)] if variables else []
    return subprocess.Popen(
        [BIN / "ansible-playbook", lab.ROOT / "playbooks" / f"{playbook}.yml", *given, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=lab.ROOT,
        env={
            **(environment or os.environ),
            "ANSIBLE_CONFIG": str(lab.ROOT / "ansible.cfg"),
            "PYTHONPATH": str(lab.ROOT),
            **(recap.WORDS if counted else {}),
        },
        start_new_session=True,
    )


def run(playbook: str, *arguments: str | Path, code: int = 0, timeout_s: float | None = LONGEST_S, **more: Any) -> str:
    """A play from beginning to end; more: as for `start`."""
    return end(start(playbook, *arguments, **more), code, timeout_s)


def end(process: subprocess.Popen[str], code: int = 0, timeout_s: float | None = LONGEST_S) -> str:
    """Await the play's end, check its exit code and return all that it said.

    One that does not end in time, or whose test is ended by its own limit, is killed with what it has started.
    """
    try:
        output, _ = process.communicate(timeout=timeout_s)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    assert process.returncode == code, f"exit code {process.returncode}, expected {code}:\n{output}"
    return output
