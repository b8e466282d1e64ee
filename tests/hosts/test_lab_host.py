# SPDX-License-Identifier: Apache-2.0
"""The roles for lab machines and runs on them, against hosts that are network namespaces with an sshd of their own.

Their kernel is this machine's: modules, kernel packages and reboots cannot be tried on them, and are skipped visibly.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent import bpf
from kernels.bpf_objects import COMPILER
from tests import lab, lab_module, plays, recap
from tests.plays import BIN, end
from tests.sshhosts import SshHosts, needs_ssh_hosts, run
from tests.waiting import wait_until

pytestmark = [pytest.mark.real_host, needs_ssh_hosts, pytest.mark.root]

# No rate, delay or loss, so that it runs on a kernel without netem too, as the one of the machine that tests may be.
EXPERIMENT = """\
warpbed: 1
name: lab
title: One short flow between machines
duration: 4s
topology:
  name: line
  params: {rate: none, delay: 0ms}
flows:
  - {name: f1, cca: reno, from: s1, to: d1, app: file, size: 5MB}
samplers: {tcp_probe: false}
"""
NODES = {"s": "s1", "r": "r1", "d": "d1"}


def plug(hosts: SshHosts) -> None:
    """sender – router – receiver: new cables between the hosts' interfaces, whatever was there before."""
    for name in hosts.names:
        for entry in json.loads(hosts.inside(name, "ip", "-j", "link")):
            if entry["ifname"] not in ("lo", "ctl0", "test0"):
                run("ip", "-n", hosts.netns(name), "link", "del", entry["ifname"], check=False)
    for a, nic_a, b, nic_b in (("s", "lan0", "r", "lan0"), ("r", "lan1", "d", "lan0")):
        run("ip", "-n", hosts.netns(a), "link", "add", nic_a, "type", "veth", "peer", "name", nic_b,
            "netns", hosts.netns(b))  # fmt: skip
        for name, nic in ((a, nic_a), (b, nic_b)):
            run("ip", "-n", hosts.netns(name), "link", "set", nic, "up")
    run("ip", "-n", hosts.netns("s"), "addr", "add", "198.51.100.1/24", "dev", "lan0")


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHosts]:
    ssh_hosts = SshHosts(tmp_path_factory.mktemp("hosts"), list(NODES))
    try:
        yield ssh_hosts
    finally:
        ssh_hosts.close()


@pytest.fixture
def hosts(machines: SshHosts) -> SshHosts:
    """Three hosts that nobody has touched yet."""
    for name in machines.names:
        (machines.root(name) / "lab-state.json").unlink(missing_ok=True)
        machines.inside(name, "sysctl", "-q", "net.ipv4.tcp_no_metrics_save=0")
    plug(machines)
    return machines


def inventory(hosts: SshHosts, folder: Path, **more: Any) -> Path:
    nics = {"s": {"r1": "lan0"}, "r": {"s1": "lan0", "d1": "lan1"}, "d": {"r1": "lan0"}}
    entries: dict[str, dict[str, Any]] = {
        name: {
            "ansible_host": hosts.control(name),
            "lab_node": NODES[name],
            "lab_nics": nics[name],
            "lab_root": str(hosts.root(name)),
            "lab_emulates": False,
        }
        for name in hosts.names
    }
    entries["s"].update(more)
    content = {
        "all": {
            "hosts": {"localhost": {"ansible_connection": "local", "ansible_python_interpreter": "/usr/bin/python3"}},
            "children": {"lab": {"hosts": entries, "vars": {
                "ansible_user": "root", "lab_become": False, "ansible_python_interpreter": "/usr/bin/python3",
                "ansible_ssh_private_key_file": str(hosts.key), "lab_known_hosts": str(hosts.known_hosts),
                "ansible_ssh_common_args": f"-o UserKnownHostsFile={hosts.known_hosts}",
                "lab_preflight_packages": ["python3"], "lab_kernel_mode": "none",
                "lab_tuning_sysctls": {"net.ipv4.tcp_no_metrics_save": "1"},
            }}},
        }
    }  # fmt: skip
    file = folder / "hosts.yml"
    file.write_text(json.dumps(content))
    return file


def play(
    hosts: SshHosts,
    folder: Path,
    playbook: str,
    *arguments: str,
    counted: bool = False,
    text: str = EXPERIMENT,
    **more: Any,
) -> subprocess.Popen[str]:
    """counted: with Ansible's own output, which ends with how much each host was changed"""
    file = lab.write(folder, text)
    variables = {
        "experiment": str(file),
        "experiment_results": str(folder / "results"),
        "experiment_host": "lab",
        "bootstrap_run_packages": ["dpkg"],
    }
    return plays.start(
        playbook, "-i", inventory(hosts, folder, **more), *arguments, variables=variables, counted=counted
    )


def condition(hosts: SshHosts) -> dict[str, Any]:
    """What a run and the tuning could change of the hosts."""
    facts: dict[str, Any] = {}
    for name in hosts.names:
        links = json.loads(hosts.inside(name, "ip", "-j", "addr"))
        facts[name] = {
            link["ifname"]: (
                link["address"],
                "UP" in link["flags"],
                [i["local"] for i in link["addr_info"] if i["scope"] == "global"],
                re.findall(
                    r"(?:tcp-seg|generic-seg|generic-rec).*", hosts.inside(name, "ethtool", "-k", link["ifname"])
                ),
            )
            for link in links
        }
        facts[name]["sysctl"] = hosts.inside(name, "sysctl", "-n", "net.ipv4.tcp_no_metrics_save")
        facts[name]["state"] = (hosts.root(name) / "lab-state.json").exists()
        facts[name]["qdiscs"] = re.findall(r"qdisc (?:tbf|netem)", hosts.inside(name, "tc", "qdisc"))
    return facts


def test_check_changes_nothing_a_run_gives_a_result_and_teardown_puts_all_back(hosts: SshHosts, tmp_path: Path) -> None:
    before = condition(hosts)
    output = end(play(hosts, tmp_path, "run_experiment", "--check"))
    assert "offload lan0 tso: 1 → 0" in output and "tcp_no_metrics_save" in output
    assert condition(hosts) == before
    output = end(play(hosts, tmp_path, "run_experiment"))
    (result,) = lab.runs(tmp_path / "results/lab")
    assert result["host"] == "lab" and "[1/1] " in output
    assert lab.table(result["path"], "flows")["delivered_bytes"].tolist() == [5_000_000]
    assert result["facts"]["host"]["machines"]["s1"]["host"] == hosts.control("s")
    assert "reno" in result["facts"]["host"]["machines"]["s1"]["modules"]
    again = end(play(hosts, tmp_path, "run_experiment", counted=True))
    assert "nothing to do: all 1 runs are there" in again
    for role in ("lab_preflight", "lab_path", "lab_kernel", "lab_tuning", "experiment"):
        assert f"TASK [{role} : " in again
    recap.assert_changes_nothing(again)
    for name in hosts.names:
        assert hosts.processes(name) == []
    assert "back to" in end(play(hosts, tmp_path, "teardown", "--check"))
    end(play(hosts, tmp_path, "teardown"))
    assert condition(hosts) == before
    recap.assert_changes_nothing(end(play(hosts, tmp_path, "teardown", counted=True)))


@pytest.mark.usefixtures("this_machine")
@pytest.mark.skipif(shutil.which(COMPILER) is None, reason="clang, which makes BPF objects, is not installed")
@pytest.mark.skipif(not bpf.KERNELS_OWN.exists(), reason="this kernel does not describe itself (CONFIG_DEBUG_INFO_BTF)")
def test_the_sender_alone_registers_a_bpf_program_and_it_is_gone_after_the_run(hosts: SshHosts, tmp_path: Path) -> None:
    """The three hosts have one kernel, which takes a name only once: a second machine that registered it would fail the run."""
    text = EXPERIMENT.replace("cca: reno", "cca: bpf_lbc")
    end(play(hosts, tmp_path, "run_experiment", text=text))
    (result,) = lab.runs(tmp_path / "results/lab")
    said = json.loads((result["path"] / "raw/f1.client.json").read_text())
    assert (said["cca"], said["bytes"]) == ("bpf_lbc", 5_000_000)
    assert "bpf_lbc" not in bpf.AVAILABLE.read_text().split()
    end(play(hosts, tmp_path, "teardown"))


@pytest.mark.usefixtures("this_machine")
@pytest.mark.skipif(shutil.which(COMPILER) is None, reason="clang, which makes BPF objects, is not installed")
@pytest.mark.skipif(not bpf.KERNELS_OWN.exists(), reason="this kernel does not describe itself (CONFIG_DEBUG_INFO_BTF)")
def test_teardown_ends_a_run_and_leaves_the_process_that_takes_back_what_it_changed(
    hosts: SshHosts, tmp_path: Path
) -> None:
    """Which bears the agent's command line; killed with it, the kernel keeps the algorithm until it boots."""
    text = EXPERIMENT.replace("cca: reno", "cca: bpf_lbc").replace(", app: file, size: 5MB", "").replace("4s", "60s")
    process = play(hosts, tmp_path, "run_experiment", text=text)
    wait_until(lambda: "bpf_lbc" in bpf.AVAILABLE.read_text().split(), 120, while_running=process)
    # interfaces that are not cards end with the namespace that a killed run leaves, so that they cannot be restored
    assert "not restored: interface lan0: not there" in end(play(hosts, tmp_path, "teardown"), code=2)
    assert "bpf_lbc" not in bpf.AVAILABLE.read_text().split()
    assert [line for name in hosts.names for line in hosts.processes(name) if "agent" in line] == []
    end(process, code=2)
    plug(hosts)
    end(play(hosts, tmp_path, "teardown"))


def test_after_kill_9_in_the_middle_teardown_puts_all_back(hosts: SshHosts, tmp_path: Path) -> None:
    before = condition(hosts)
    process = play(hosts, tmp_path, "run_experiment")
    wait_until(
        lambda: any("agent.host" in line for name in hosts.names for line in hosts.processes(name)),
        120,
        while_running=process,
        every_s=0.2,
    )
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    wait_until(
        lambda: not any("agent" in line for name in hosts.names for line in hosts.processes(name)),
        120,
        every_s=0.2,
        say=lambda: [hosts.processes(name) for name in hosts.names],
    )
    if any("lan0" not in condition(hosts)[name] for name in hosts.names):
        # interfaces that are not cards end with the namespace that a killed run leaves; cards come back to the machine
        plug(hosts)
    end(play(hosts, tmp_path, "teardown"))
    after = condition(hosts)
    for name in hosts.names:
        assert {k: v for k, v in after[name].items() if k in ("sysctl", "state", "qdiscs")} == {
            k: v for k, v in before[name].items() if k in ("sysctl", "state", "qdiscs")
        }
        assert set(after[name]) == set(before[name])


def test_a_machine_that_vanishes_is_named_and_the_same_call_resumes(hosts: SshHosts, tmp_path: Path) -> None:
    process = play(hosts, tmp_path, "run_experiment")
    wait_until(lambda: any("agent.host" in line for line in hosts.processes("d")), 120, while_running=process)
    hosts.kill("d")
    output = end(process, code=2)
    assert re.search(r"\bd1\b", output)
    (failed,) = (tmp_path / "results/lab").glob("*.failed-1")
    assert json.loads((failed / "run.json").read_text())["error"]["subject"] == "d1"
    for name in ("s", "r"):
        assert hosts.processes(name) == []
    hosts.start("d")
    plug(hosts)
    end(play(hosts, tmp_path, "run_experiment"))
    assert [run["status"] for run in lab.runs(tmp_path / "results/lab") if run["status"] == "complete"] == ["complete"]


def test_interfaces_that_a_run_has_left_under_other_names_get_theirs_back(hosts: SshHosts, tmp_path: Path) -> None:
    before = condition(hosts)
    state_file = hosts.root("s") / "lab-state.json"

    def call(state: str, *, check: bool = False) -> dict[str, Any]:
        request = {
            "state": state,
            "root": str(hosts.root("s")),
            "nics": ["lan0"],
            "protected": {"ctl0": "is the control interface"},
        }
        return lab_module.answer(request, check=check, netns=hosts.netns("s"))

    assert call("tuned", check=True)["changed"] and not state_file.exists()
    assert call("tuned")["changed"] and not call("tuned")["changed"]
    tuned = condition(hosts)
    assert call("restored", check=True)["changed"] and condition(hosts) == tuned
    netns = hosts.netns("s")
    for command in ("lan0 down", "lan0 name s1-eth0", "s1-eth0 address 02:00:00:00:00:01"):
        run("ip", "-n", netns, "link", "set", *command.split())
    run("ip", "-n", netns, "addr", "flush", "dev", "s1-eth0")
    assert call("restored")["left"] == []
    assert condition(hosts) == before
    assert not call("restored")["changed"]


def test_the_control_interface_is_never_a_test_interface(hosts: SshHosts, tmp_path: Path) -> None:
    before = condition(hosts)
    output = end(play(hosts, tmp_path, "run_experiment", lab_nics={"r1": "ctl0"}), code=2)
    assert "ctl0 is the control interface and cannot be a test interface" in output
    assert condition(hosts) == before


def test_preflight_says_everything_that_is_wrong_at_once(hosts: SshHosts, tmp_path: Path) -> None:
    output = end(play(
        hosts, tmp_path, "run_experiment", lab_nics={"r1": "nic7"}, lab_preflight_free_bytes=10**18,
    ), code=2)  # fmt: skip
    assert "no interface nic7" in output and "MB needed" in output
    assert not (tmp_path / "results/lab").exists()


def test_an_algorithm_that_the_project_does_not_have_is_named_before_anything_is_changed(
    hosts: SshHosts, tmp_path: Path
) -> None:
    wrong: dict[str, Any] = {"lab_kernel_mode": "dkms", "lab_kernel_algorithms": ["perack", "medly"]}
    output = " ".join(end(play(hosts, tmp_path, "lab_kernel", **wrong), code=2).split())
    assert "lab_kernel_algorithms: the project has no medly; it has astart_bwe," in output and " perack," in output


def test_a_router_that_cannot_emulate_is_reported_before_a_run(hosts: SshHosts, tmp_path: Path) -> None:
    lacks = subprocess.run(
        ["ip", "netns", "exec", hosts.netns("r"), "tc", "qdisc", "add", "dev", "lan1", "root", "netem", "delay", "1ms"],
        capture_output=True,
    ).returncode
    if not lacks:
        run("ip", "netns", "exec", hosts.netns("r"), "tc", "qdisc", "del", "dev", "lan1", "root")
        pytest.skip("this machine's kernel has netem")
    output = end(play(hosts, tmp_path, "run_experiment", lab_emulates=True), code=2)
    assert "the kernel cannot emulate links" in output and "netem" in output


SUDO = """\
#!/bin/sh
# asks as sudo does, and keeps what it saw on its command line and in its environment
while [ $# -gt 0 ]; do case $1 in -p) printf %s "$2" >&2; shift 2 ;; -u) shift 2 ;; -*) shift ;; *) break ;; esac; done
read -r password
cat "/proc/$PPID/cmdline" "/proc/$$/cmdline" "/proc/$$/environ" >>"{folder}/seen"
[ "$password" = "{password}" ] || exit 1
touch "{folder}/asked"
exec "$@"
"""


def test_a_password_from_the_vault_reaches_sudo_and_nothing_else(hosts: SshHosts, tmp_path: Path) -> None:
    password, tool = "correct horse 4711", tmp_path / "sudo"
    tool.write_text(SUDO.format(folder=tmp_path, password=password))
    tool.chmod(0o755)
    (tmp_path / "vault_password").write_text("opens the vault\n")
    entry = subprocess.run(
        [BIN / "ansible-vault", "encrypt_string", "--vault-password-file", tmp_path / "vault_password", password,
         "--name", "vault_become_password"], check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert "$ANSIBLE_VAULT" in entry and password not in entry
    variables = inventory(hosts, tmp_path).parent / "group_vars/lab.yml"
    variables.parent.mkdir()
    variables.write_text(f'{entry}ansible_become_password: "{{{{ vault_become_password }}}}"\n')
    vault = ("--vault-password-file", str(tmp_path / "vault_password"))
    asking: dict[str, Any] = {
        "ansible_become_exe": str(tool),
        "ansible_become_user": "nobody",
        "lab_become": True,
        "lab_preflight_become": True,
    }
    output = end(play(hosts, tmp_path, "teardown", *vault, "-vvv", "--limit", "s", **asking))
    assert (tmp_path / "asked").exists()
    assert output.count(password) == 0
    seen = [tmp_path / "seen", *tmp_path.rglob("*.log"), *tmp_path.rglob("*.json"), variables]
    assert not [file for file in seen if password.encode() in file.read_bytes()]


def test_modules_and_kernel_packages_on_lab_machines() -> None:
    pytest.skip("these hosts share this machine's kernel; tests/hosts/test_lab_kernel.py boots a machine of its own")
