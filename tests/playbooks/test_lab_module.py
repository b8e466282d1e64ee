# SPDX-License-Identifier: Apache-2.0
"""The Ansible module that looks at lab machines, tunes and restores them: its arguments and check mode.

What it does to interfaces is tested on hosts of their own (tests/hosts/test_lab_host.py).
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
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
        (
            {"root": "/nonexistent", "state": "facts", "nic": "lan0"},
            "module: nic. Supported parameters include: attempts, governor",
        ),
        ({"state": "facts", "root": "lib/warpbed"}, "root: lib/warpbed is not an absolute path"),
        (
            {"root": "/nonexistent", "state": "facts", "attempts": {"veth": "ip link"}},
            "attempts: veth is not a list of commands",
        ),
        (
            {"root": "/nonexistent", "state": "facts", "attempts": {"veth": [" "]}},
            "attempts: veth is not a list of commands",
        ),
        ({**TUNED, "irq_cpu": "first"}, "irq_cpu"),
        ({**TUNED, "sysctls": {"/etc/hosts": "1"}}, "sysctls: /etc/hosts is not a sysctl's name"),
        ({**TUNED, "sysctls": {"net.ipv4.tcp_sack": True}}, "net.ipv4.tcp_sack is True, not a text or a number"),
        ({**TUNED, "sysctls": {"net.ipv4.tcp_socks": "1"}}, "sysctl net.ipv4.tcp_socks: this kernel has none"),
        ({**TUNED, "nics": ["nic7"]}, "nic7: there is no such interface; it has "),
        ({**TUNED, "nics": ["lan0", "eth0"]}, "eth0 is the control interface; it is never touched"),
        ({**TUNED, "protected": {}}, "which interface SSH comes in by is not known; nothing was changed (lab_control)"),
    ],
)
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


@pytest.fixture
def namespace() -> Iterator[str]:
    name = f"wb-lab-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True)
    yield name
    subprocess.run(["ip", "netns", "delete", name], check=True)


@pytest.mark.root
def test_routes_of_test_interfaces_come_back(tmp_path: Path, namespace: str) -> None:
    def ip(*lines: str) -> None:
        for line in lines:
            subprocess.run(["ip", "-n", namespace, *line.split()], check=True)

    def routes() -> list[str]:
        commands = [
            ["ip", "-n", namespace, family, "route", "show", "table", "all", "dev", "lan0"] for family in ("-4", "-6")
        ]
        lines = [line.strip() for c in commands for line in subprocess.check_output(c, text=True).splitlines()]
        return sorted(line for line in lines if "kernel" not in line)

    ip(
        "link add lan0 type veth peer name far0", "link set far0 up", "addr add 192.0.2.1/24 dev lan0",
        "addr add 2001:db8::1/64 dev lan0 nodad", "link set lan0 up",
        "route add 203.0.113.7 dev lan0", "route add 198.51.100.0/24 via 192.0.2.9 dev lan0 src 192.0.2.1 metric 7",
        "route add default via 203.0.113.7 dev lan0 table 100", "-6 route add 2001:db8:1::/48 via 2001:db8::9 dev lan0",
    )  # fmt: skip
    before = routes()
    assert len(before) == 4
    request = {"root": str(tmp_path), "nics": ["lan0"]}
    answer({**request, "state": "tuned", "protected": PROTECTED}, netns=namespace)
    ip(
        "link set lan0 down",
        "addr flush dev lan0",
        "link set lan0 name wb-a0",
        "addr add 10.0.0.1/24 dev wb-a0",
        "link set wb-a0 up",
    )
    done = answer({**request, "state": "restored"}, netns=namespace)
    assert not done.get("failed"), done
    assert routes() == before
    assert not answer({**request, "state": "restored"}, netns=namespace)["changes"]


def test_interrupts_of_before_a_reboot_are_left_as_they_are(tmp_path: Path) -> None:
    irq = ["file", "/proc/irq/99999/smp_affinity_list", "3"]
    state = {"before": [irq], "nics": {}, "boot_id": "an earlier one"}
    (tmp_path / warpbed_lab.STATE).write_text(json.dumps(state))
    done = answer({"root": str(tmp_path), "state": "restored"})
    assert done["changes"] == [] and done["left"] == []
    (tmp_path / warpbed_lab.STATE).write_text(json.dumps({**state, "boot_id": warpbed_lab.boot_id()}))
    done = answer({"root": str(tmp_path), "state": "restored"})
    assert done["failed"] and "No such file" in done["msg"]
