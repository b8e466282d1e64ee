# SPDX-License-Identifier: Apache-2.0
"""Call a playbook and turn how it ended into an exit code of the contract."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO

from base.errors import UsageError
from base.linux import die_with_parent
from base.paths import ROOT
from base.watcher import remove_folder, watching

TEMPLATE_MARKS = ("{{", "{%", "{#")


def play(
    playbook: str,
    variables: Mapping[str, object],
    failed_early: int = 2,
    inventory: str = "virtual",
    output: TextIO | None = None,
) -> int:
    """Run a playbook of this checkout; returns 0, 1 or 2.

    Where the play got as far as to execute runs, the code is theirs (warpbed_stream leaves it in a status file). One
    that fails before has started nothing and gives `failed_early`. inventory: a folder below inventory/, or
    an absolute path. output: where what it says goes (standard output).
    """
    texts = [
        (name, text) for name, value in variables.items() for text in (value if isinstance(value, list) else [value])
    ]
    for name, value in texts:
        if isinstance(value, str) and any(mark in value for mark in TEMPLATE_MARKS):
            raise UsageError(
                f"{name}: {value!r} holds {' or '.join(TEMPLATE_MARKS)}, which Ansible would execute; rename the file or folder"
            )
    with _folder() as folder:
        status = folder / "status"
        # this machine's entry in an inventory takes TMPDIR; other machines have no such folder, and would keep it
        temporary = {"TMPDIR": folder, "ANSIBLE_LOCAL_TEMP": folder, "ANSIBLE_REMOTE_TEMP": "/tmp"}
        environment = dict(os.environ, WARPBED_STATUS=str(status), PYTHONUNBUFFERED="1")
        environment.update({name: str(path) for name, path in temporary.items()})
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
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, preexec_fn=die_with_parent)
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


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """A folder for Ansible's temporary files, which goes with this process however it ends."""
    folder = Path(tempfile.mkdtemp(prefix="warpbed-"))
    with watching(remove_folder, str(folder), quiet=True):
        yield folder


def _interrupted(process: subprocess.Popen[bytes]) -> int:
    """The terminal sends Ctrl-C to Ansible as well; give it time to end what it started."""
    try:
        return process.wait(30)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        process.kill()
        return process.wait()
