# SPDX-License-Identifier: Apache-2.0
"""The Ansible module that looks at lab machines, tunes and restores them: its arguments and check mode.

What it does to interfaces is tested on hosts of their own (tests/hosts/test_lab_host.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from playbooks.library import warpbed_lab
from tests.lab_module import answer

SYSCTL = Path("/proc/sys/net/ipv4/tcp_no_metrics_save")
PROTECTED = {"eth0": "is the control interface"}
TUNED = {"state": "tuned", "root": "/nonexistent", "protected": PROTECTED}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "missing required arguments: root, state"),
        ({"state": "tuned"}, "missing required arguments: root"),
        ({"root": "/nonexistent", "state": "tune"}, "value of state must be one of: facts, tuned, restored, got: tune"),
        ({"root": "/nonexistent", "state": "facts", "nic": "lan0"}, "module: nic. Supported parameters include: attempts, governor"),
        ({"state": "facts", "root": "lib/warpbed"}, "root: lib/warpbed is not an absolute path"),
        ({"root": "/nonexistent", "state": "facts", "attempts": {"veth": "ip link"}}, "attempts: veth is not a list of commands"),
        ({"root": "/nonexistent", "state": "facts", "attempts": {"veth": [" "]}}, "attempts: veth is not a list of commands"),
        ({**TUNED, "irq_cpu": "first"}, "irq_cpu"),
        ({**TUNED, "sysctls": {"/etc/hosts": "1"}}, "sysctls: /etc/hosts is not a sysctl's name"),
        ({**TUNED, "sysctls": {"net.ipv4.tcp_sack": True}},
         "net.ipv4.tcp_sack is True, not a text or a number"),
        ({**TUNED, "sysctls": {"net.ipv4.tcp_socks": "1"}},
         "sysctl net.ipv4.tcp_socks: this kernel has none"),
        ({**TUNED, "nics": ["nic7"]}, "nic7: there is no such interface; it has "),
        ({**TUNED, "nics": ["lan0", "eth0"]}, "eth0 is the control interface; it is never touched"),
        ({**TUNED, "protected": {}}, "which interface SSH comes in by is not known; nothing was changed (lab_control)"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_refused_by_name(arguments: dict[str, Any], message: str) -> None:
    result = answer(arguments, check=True)
    assert result["failed"] and message in result["msg"]


def test_check_mode_says_what_would_change_and_changes_nothing(tmp_path: Path) -> None:
    now = SYSCTL.read_text().strip()
    wanted = "1" if now == "0" else "0"
    request = {"root": str(tmp_path), "protected": PROTECTED, "sysctls": {"net.ipv4.tcp_no_metrics_save": wanted}}
    result = answer({**request, "state": "tuned"}, check=True)
    assert result["changed"] and result["changes"] == [f"file {SYSCTL}: {now} → {wanted}"]
    assert SYSCTL.read_text().strip() == now and not list(tmp_path.iterdir())
    same = {**request, "sysctls": {"net.ipv4.tcp_no_metrics_save": now}}
    assert not answer({**same, "state": "tuned"}, check=True)["changed"]
    assert answer({**request, "state": "restored"}, check=True)["changes"] == []


def test_looking_reports_interfaces_that_are_not_there_and_tools_that_are_missing(tmp_path: Path) -> None:
    result = answer({"state": "facts", "root": str(tmp_path), "nics": ["lo", "nic7"], "tools": ["sh", "no-such-tool"]})
    assert not result["changed"] and not result["machine"]["tuned"]
    assert result["machine"]["nics"]["nic7"] is None and result["machine"]["nics"]["lo"]["up"]
    assert result["machine"]["tools"] == ["no-such-tool"]


def test_the_documentation_has_the_arguments_as_they_are() -> None:
    options = YAML(typ="safe").load(warpbed_lab.DOCUMENTATION)["options"]
    documented = {
        name: {key: value for key, value in option.items() if key != "description"} for name, option in options.items()
    }
    assert documented == warpbed_lab.ARGUMENTS
