# SPDX-License-Identifier: Apache-2.0
"""What the plays put on other people's machines, and that they take away no more than that."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests import lab, plays

PLAY = """\
- hosts: localhost
  gather_facts: false
  roles: [{role}]
"""
ONE_TIME_BOOT = """\
- hosts: localhost
  gather_facts: false
  tasks: [{include_role: {name: lab_kernel, tasks_from: boot_once}}]
"""
GRUB_PROBE = """\
#!/bin/sh
case $1 in --target=abstraction) echo '%s';; --target=fs) echo '%s';; esac
exit %d
"""
DPKG = """\
#!/bin/sh
for name in {installed}; do echo "installed $name"; done
exit 1
"""
LOCAL = {"ansible_connection": "local", "ansible_python_interpreter": "/usr/bin/python3"}


def play(folder: Path, role: str, code: int, installed: str = "", **variables: Any) -> str:
    """Play a role on this machine, which has other packages in its list."""
    programs = folder / "bin"
    (folder / "playbooks").mkdir(exist_ok=True)
    programs.mkdir(exist_ok=True)
    for name in ("hosts", "base", "testbed", "agent", "network", "plan"):
        if not (folder / name).exists():
            (folder / name).symlink_to(lab.ROOT / name)
    (folder / "playbooks/play.yml").write_text(PLAY.format(role=role))
    (programs / "dpkg-query").write_text(DPKG.format(installed=installed))
    (programs / "dpkg-query").chmod(0o755)
    return " ".join(
        plays.run(
            str(folder / "playbooks/play"),
            variables={**LOCAL, **variables},
            code=code,
            environment={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},
        ).split()
    )


def wan(folder: Path) -> dict[str, Any]:
    return {
        "wan_end_become": False,
        "wan_end_install": False,
        "wan_address": "192.0.2.1",
        "wan_end_root": str(folder / "srv"),
        "wan_teardown_root": str(folder / "srv"),
        "wan_teardown_become": False,
    }


@pytest.mark.parametrize(
    ("installed", "missing"),
    [
        ("iproute2 python3 tcpdump", "chrony traceroute"),
        ("iproute2 python3 tcpdump systemd-timesyncd", "traceroute"),
        ("iproute2 python3 tcpdump ntpsec", "traceroute"),
    ],
)
def test_a_time_daemon_that_a_host_has_is_not_replaced(tmp_path: Path, installed: str, missing: str) -> None:
    output = play(tmp_path, "wan_end", 2, installed, **wan(tmp_path))
    assert f"apt-get install --no-install-recommends {missing}" in output + " "
    assert f"{missing} and" not in output and not (tmp_path / "srv").exists()


def test_teardown_takes_what_is_ours_out_of_a_folder_and_nothing_else(tmp_path: Path) -> None:
    srv = tmp_path / "srv"
    (srv / "www").mkdir(parents=True)
    (srv / "www/index.html").write_text("years of work")
    srv.chmod(0o755)
    play(tmp_path, "wan_end", 0, "chrony iproute2 python3 tcpdump traceroute", **wan(tmp_path))
    (agent,) = srv.glob("agent-*.pyz")
    assert agent.stat().st_mode & 0o777 == 0o600 and (srv / "transfers").stat().st_mode & 0o777 == 0o700
    assert srv.stat().st_mode & 0o777 == 0o755, "somebody else's folder keeps its mode"
    (srv / "transfers/t.a1").mkdir()
    play(tmp_path, "wan_teardown", 0, **wan(tmp_path))
    assert [str(path.relative_to(srv)) for path in sorted(srv.rglob("*"))] == ["www", "www/index.html"]


def test_teardown_removes_a_folder_that_was_made_for_the_agent(tmp_path: Path) -> None:
    play(tmp_path, "wan_end", 0, "chrony iproute2 python3 tcpdump traceroute", **wan(tmp_path))
    assert (tmp_path / "srv").stat().st_mode & 0o777 == 0o700
    play(tmp_path, "wan_teardown", 0, **wan(tmp_path))
    assert not (tmp_path / "srv").exists()


def test_the_hosts_of_a_campaign_are_in_no_command_line(tmp_path: Path) -> None:
    tasks = (lab.ROOT / "playbooks/roles/campaign/tasks/main.yml").read_text()
    assert "--ends" not in tasks and "WARPBED_ENDS" in tasks


@pytest.mark.parametrize(
    ("abstraction", "fs", "exit_code", "lies_on"),
    [
        ("", "ext2", 0, ""),
        ("lvm", "ext2", 0, "lvm, ext2"),
        ("mdraid1x", "xfs", 0, "mdraid1x, xfs"),
        ("", "btrfs", 0, "btrfs"),
        ("", "zfs", 1, "non-zero return code"),
    ],
)
def test_a_kernel_is_refused_where_grub_cannot_boot_it_once(
    tmp_path: Path, abstraction: str, fs: str, exit_code: int, lies_on: str
) -> None:
    programs = tmp_path / "bin"
    (tmp_path / "playbooks").mkdir()
    programs.mkdir()
    (tmp_path / "playbooks/play.yml").write_text(ONE_TIME_BOOT)
    (programs / "grub-probe").write_text(GRUB_PROBE % (abstraction, fs, exit_code))
    (programs / "grub-probe").chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    variables = {**LOCAL, "lab_kernel_become": False}
    output = plays.run(
        str(tmp_path / "playbooks/play"), variables=variables, code=2 if lies_on else 0, environment=environment
    )
    message = " ".join(output.split())
    assert ("cannot boot a kernel just once" in message) == bool(lies_on) and lies_on in message
    if lies_on:
        variables["lab_kernel_without_way_back"] = True
        plays.run(str(tmp_path / "playbooks/play"), variables=variables, code=0, environment=environment)
