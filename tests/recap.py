# SPDX-License-Identifier: Apache-2.0
"""What Ansible counted at the end of a play."""

from __future__ import annotations

import re

LINE = re.compile(r"^(\S+)\s+: ok=\d+\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)", re.MULTILINE)
WORDS = {"ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.default"}
"""Environment of a play whose recap is to be read."""


def assert_changes_nothing(output: str) -> None:
    """Every host of the play was reached, none failed, and no task changed any of them."""
    hosts = LINE.findall(output.rpartition("PLAY RECAP")[2])
    assert hosts, output
    assert all(counts == ["0", "0", "0"] for _, *counts in hosts), output
