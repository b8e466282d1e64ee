# SPDX-License-Identifier: Apache-2.0
"""The control interface is known and left alone where SSH logs in as a user and sudo makes it root, as docs/lab.md begins.

The sudo is the real one: with a shell script in its place nobody saw that it drops SSH_CONNECTION.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hosts.lab.machines import LabRemote
from hosts.remote import RemoteError
from tests import lab, plays
from tests.plays import end
from tests.sshhosts import PATH, SshHosts, needs_ssh_hosts, run

pytestmark = [
    pytest.mark.real_host,
    needs_ssh_hosts,
    pytest.mark.root,
    pytest.mark.skipif(shutil.which("sudo", path=PATH) is None, reason="not installed: sudo"),
]
USER = "wbuser"
PLAY = """\
- hosts: lab
  gather_facts: false
  roles: [{role}]
"""
AGENT = """\
import sys
from agent.errors import RunError
from agent.machine import MachineNetwork
from network.model import Link, Network, Node
from plan.model import Cabling, Plan
network = Network((Node("s1"), Node("d1")), (Link("s1", "d1"),))
told = Cabling("s1", {"s1-eth0": sys.argv[1]}, {"s1-eth0": 0}, protected={"lo": "is the control interface"})
try:
    MachineNetwork(Plan(network, (), 1.0, 1.0, 0.0, {}), told).stop()
except RunError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHosts]:
    """One machine with a user; its test interface is `lan0`, and `br0` is a bridge without a port."""
    ssh_hosts = SshHosts(tmp_path_factory.mktemp("hosts"), ["m"], user=USER)
    try:
        netns = ssh_hosts.netns("m")
        run("ip", "-n", netns, "link", "add", "lan0", "type", "veth", "peer", "name", "lan0p")
        run("ip", "-n", netns, "link", "set", "lan0", "up")
        run("ip", "-n", netns, "link", "set", "lan0p", "up")
        run("ip", "-n", netns, "link", "add", "br0", "type", "bridge")
        yield ssh_hosts
    finally:
        ssh_hosts.close()


def remote(host: SshHosts) -> LabRemote:
    return LabRemote(host.control("m"), 22, USER, host.key, host.known_hosts, host.control("m"), become=True)


def play(host: SshHosts, folder: Path, role: str, nic: str, *arguments: str, code: int = 0, **more: Any) -> str:
    """Play one role, as lab_become: true does it; returns what Ansible said, on one line."""
    entry = {
        "ansible_host": host.control("m"),
        "ansible_user": USER,
        "ansible_python_interpreter": "/usr/bin/python3",
        "ansible_ssh_private_key_file": str(host.key),
        "ansible_ssh_common_args": f"-o UserKnownHostsFile={host.known_hosts}",
        "lab_node": "s1",
        "lab_nics": {"r1": nic},
        "lab_root": str(host.root("m")),
        "lab_become": True,
        "lab_preflight_packages": ["python3"],
        "lab_preflight_free_bytes": 0,
        "lab_tuning_sysctls": {"net.ipv4.tcp_no_metrics_save": "1"},
        **more,
    }
    (folder / "hosts.yml").write_text(json.dumps({"all": {"children": {"lab": {"hosts": {"m": entry}}}}}))
    # the roles find what they send beside the playbook's folder
    (folder / "playbooks").mkdir(exist_ok=True)
    for name in ("hosts", "base"):
        if not (folder / name).exists():
            (folder / name).symlink_to(lab.ROOT / name)
    (folder / "playbooks/play.yml").write_text(PLAY.format(role=role))
    process = plays.start(str(folder / "playbooks/play"), "-i", folder / "hosts.yml", *arguments, variables={})
    return " ".join(end(process, code=code).split())


def test_this_sudo_drops_the_connection_that_the_control_interface_is_known_by(host: SshHosts) -> None:
    assert b"SSH_CONNECTION" not in remote(host).run("env")
    assert remote(host).run("id", "-u") == b"0\n"


def test_a_run_asks_before_sudo_and_gets_the_control_interface(host: SshHosts) -> None:
    assert remote(host).protected([])["ctl0"] == "is the control interface"
    assert remote(host).protected(["lan0"])["lan0"] == "is a control interface (lab_control)"
    with pytest.raises(RemoteError, match="lab_control: no interface lan7; there are"):
        remote(host).protected(["lan7"])


@pytest.mark.parametrize("role", ["lab_preflight", "lab_tuning"])
def test_below_sudo_the_control_interface_is_refused_and_nothing_is_changed(
    host: SshHosts, tmp_path: Path, role: str
) -> None:
    # without IPv6, whose addresses are tentative for a second or two after an interface came up
    before = host.inside("m", "ethtool", "-k", "ctl0"), host.inside("m", "ip", "-4", "addr")
    assert "ctl0 is the control interface" in play(host, tmp_path, role, "ctl0", code=2)
    assert (host.inside("m", "ethtool", "-k", "ctl0"), host.inside("m", "ip", "-4", "addr")) == before
    assert not (host.root("m") / "lab-state.json").exists()


def test_below_sudo_another_interface_is_taken_also_where_the_inventory_makes_every_task_root(
    host: SshHosts, tmp_path: Path
) -> None:
    for more in ({}, {"ansible_become": True}):
        text = play(host, tmp_path, "lab_tuning", "lan0", "--check", **more)
        assert "offload lan0 tso: 1 → 0" in text


def test_the_port_of_a_bridge_that_ssh_comes_in_by_is_refused(host: SshHosts, tmp_path: Path) -> None:
    netns, address = host.netns("m"), f"{host.control('m')}/30"
    host.inside("m", "sh", "-c", f"ip link set br0 up && ip addr del {address} dev ctl0 && ip link set ctl0 master br0"
                f" && ip addr add {address} dev br0")  # fmt: skip
    try:
        assert "ctl0 carries the control interface (br0)" in play(host, tmp_path, "lab_preflight", "ctl0", code=2)
    finally:
        run("ip", "-n", netns, "link", "set", "ctl0", "nomaster")
        # a bridge that has lost its last port has lo's address, all zeros
        run("ip", "-n", netns, "link", "set", "br0", "address", "02:00:00:00:00:01")
        run("ip", "-n", netns, "addr", "del", address, "dev", "br0")
        run("ip", "-n", netns, "addr", "add", address, "dev", "ctl0")


@pytest.mark.parametrize("name", ["lo", "00:00:00:00:00:00"])
def test_the_agent_refuses_it_too_also_where_it_is_named_by_its_mac(host: SshHosts, name: str) -> None:
    output = run("ip", "netns", "exec", host.netns("m"), "env", f"PYTHONPATH={lab.ROOT}",
                "/usr/bin/python3", "-B", "-P", "-c", AGENT, name)  # fmt: skip
    assert "lo is the control interface; it is never touched" in output
