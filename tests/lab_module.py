# SPDX-License-Identifier: Apache-2.0
"""The Ansible module for lab machines, called as Ansible calls it on the machine: one JSON object in, one out."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from base.paths import ROOT

MODULE = ROOT / "playbooks/library/warpbed_lab.py"


def answer(arguments: dict[str, Any], *, check: bool = False, netns: str | None = None) -> dict[str, Any]:
    """netns: network namespace that the module runs in, by its name."""
    given = {**arguments, "_ansible_check_mode": check, "_ansible_remote_tmp": "/tmp"}
    done = subprocess.run(
        [*(["ip", "netns", "exec", netns] if netns else []), sys.executable, MODULE],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": given}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.lstrip().startswith("{"), done.stdout + done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    assert bool(result.get("failed")) == (done.returncode != 0)
    return result
