# SPDX-License-Identifier: Apache-2.0
"""Run one of Warpbed's own programs on the controlling host and show its lines as they come.

    - warpbed_stream:
        argv: [program, argument, ...]
        environment: {NAME: value}

Ansible's own command module shows nothing until the program has ended, which a run of minutes must not do. The
program is started so that it ends when Ansible does, also when Ansible is killed: its standard input is a pipe, whose
end it takes as the sign to stop.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

PR_SET_PDEATHSIG = 1  # not from base.linux: ansible-playbook called by itself does not have the checkout on its path
ENDING_TIMEOUT_S = 60


class ActionModule(ActionBase):
    """See the module's text. Check mode runs nothing."""

    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result: dict[str, Any] = super().run(tmp, task_vars)
        argv = self._task.args.get("argv")
        if not isinstance(argv, list) or not argv:
            raise AnsibleActionFail("warpbed_stream needs argv, a list of program and arguments")
        if self._task.check_mode:
            return {**result, "skipped": True, "msg": "check mode runs nothing"}
        more = {str(name): str(value) for name, value in (self._task.args.get("environment") or {}).items()}
        code, lines = _stream([str(part) for part in argv], more)
        if status := os.environ.get("WARPBED_STATUS"):  # for whoever has called ansible-playbook
            Path(status).write_text(str(code))
        result.update(rc=code, changed=code == 0 and not any(line.startswith("nothing to do") for line in lines))
        if code:
            result.update(failed=True, msg=f"exit code {code}; the reason is above")
        return result


def _stream(argv: list[str], more: dict[str, str]) -> tuple[int, list[str]]:
    display, lines = Display(), []
    # Ansible's worker is a process of its own; without this it would outlive a killed ansible-playbook
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    process = subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=dict(os.environ, WARPBED_STOP_AT_EOF="1", **more),
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            display.display(lines[-1])
        return process.wait(), lines
    finally:
        process.stdin.close()
        try:
            process.wait(ENDING_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
