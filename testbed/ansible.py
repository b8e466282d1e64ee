# SPDX-License-Identifier: Apache-2.0
"""Call a playbook and turn how it ended into an exit code of the contract."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from testbed.cache import ROOT

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def play(playbook: str, variables: Mapping[str, object], failed_early: int = 2, inventory: str = "virtual") -> int:
    """Run a playbook of this checkout; returns 0, 1 or 2.

    Where the play got as far as to execute runs, the code is theirs (warpbed_stream leaves it in a status file). One
    that fails before has started nothing and gives `failed_early`. inventory: a folder below inventory/.
    """
    with tempfile.TemporaryDirectory(prefix="warpbed-") as folder:
        status = Path(folder) / "status"
        environment = dict(os.environ, WARPBED_STATUS=str(status), PYTHONUNBUFFERED="1")
        if sys.stdout.isatty():
            environment["WARPBED_TERMINAL"] = os.ttyname(sys.stdout.fileno())
            environment["COLUMNS"] = str(os.get_terminal_size(sys.stdout.fileno()).columns)
        command = [
            "ansible-playbook",
            str(ROOT / "playbooks" / playbook),
            "--inventory",
            str(ROOT / "inventory" / inventory),
            "--extra-vars",
            json.dumps(dict(variables)),
        ]
        process = subprocess.Popen(command, cwd=ROOT, env=environment, preexec_fn=_die_with_parent)
        try:
            code = process.wait()
        except KeyboardInterrupt:
            code = _interrupted(process)
        if code == 0:
            return 0
        try:
            return int(status.read_text())
        except (OSError, ValueError):
            return failed_early


def _interrupted(process: subprocess.Popen[bytes]) -> int:
    """The terminal sends Ctrl-C to Ansible as well; give it time to end what it started."""
    try:
        return process.wait(30)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        process.kill()
        return process.wait()


def _die_with_parent() -> None:
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
