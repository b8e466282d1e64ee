# SPDX-License-Identifier: Apache-2.0
"""What the plays put on other people's machines, and that they take away no more than that."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tests import fake_apt, lab, plays

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
LOCAL = {"ansible_connection": "local", "ansible_python_interpreter": "/usr/bin/python3"}


def play(folder: Path, role: str, code: int, installed: str | None = "", **variables: Any) -> str:
    """Play a role on this machine, which has other packages in its list; None: those that the play before has left."""
    programs = folder / "bin"
    (folder / "playbooks").mkdir(exist_ok=True)
    for name in ("hosts", "base", "testbed", "agent", "network", "plan"):
        if not (folder / name).exists():
            (folder / name).symlink_to(lab.ROOT / name)
    (folder / "playbooks/play.yml").write_text(PLAY.format(role=role))
    if installed is not None:
        fake_apt.put(programs, lab.ROOT, folder / "state", installed)
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


def test_an_owners_transfers_are_refused_and_survive_teardown(tmp_path: Path) -> None:
    """Such as /srv named as wan_end_root, where /srv/transfers is somebody's."""
    taxes = tmp_path / "srv/transfers/tax-2025.pdf"
    taxes.parent.mkdir(parents=True)
    taxes.parent.chmod(0o755)
    taxes.write_text("years of work")
    output = play(tmp_path, "wan_end", 2, "iproute2 python3 tcpdump", **wan(tmp_path) | {"wan_end_install": True})
    assert "wan_end_root:" in output and "srv/transfers is there and is not Warpbed's" in output
    assert fake_apt.packages(tmp_path / "state").keys() == {"iproute2", "python3", "tcpdump"}, "refused before all else"
    assert "srv/transfers stays: it is not Warpbed's" in play(tmp_path, "wan_teardown", 0, None, **wan(tmp_path))
    assert taxes.read_text() == "years of work" and taxes.parent.stat().st_mode & 0o777 == 0o755


def test_a_root_that_others_may_write_is_refused(tmp_path: Path) -> None:
    (tmp_path / "srv").mkdir()
    (tmp_path / "srv").chmod(0o777)
    output = play(tmp_path, "wan_end", 2, "chrony iproute2 python3 tcpdump traceroute", **wan(tmp_path))
    assert "srv can be written by others (mode 0777)" in output
    assert list((tmp_path / "srv").iterdir()) == []


def test_packages_that_a_campaign_has_installed_go_with_it_and_no_others(tmp_path: Path) -> None:
    variables = wan(tmp_path) | {"wan_end_install": True}
    play(tmp_path, "wan_end", 0, "iproute2 python3 tcpdump ntpsec", **variables)
    there = {"iproute2", "python3", "tcpdump", "ntpsec"}
    assert fake_apt.packages(tmp_path / "state").keys() == there | {"traceroute", "libtrace"}
    play(tmp_path, "wan_teardown", 0, None, **variables)
    assert fake_apt.packages(tmp_path / "state").keys() == there and not (tmp_path / "srv").exists()


def laboratory(folder: Path) -> dict[str, Any]:
    root = str(folder / "srv")
    return {"lab_become": False, "lab_root": root, "lab_node": "s1", "lab_nics": {"r1": "nope0"}}


LABORATORY = "ethtool iperf3 iproute2 kmod mininet python3 tcpdump"


@pytest.mark.parametrize(("has", "missing"), [("", "chrony"), ("ntpsec", "")])
def test_a_time_daemon_that_a_lab_machine_has_is_not_replaced(tmp_path: Path, has: str, missing: str) -> None:
    variables = laboratory(tmp_path) | {"lab_preflight_install": False}
    output = play(tmp_path, "lab_preflight", 2, f"{LABORATORY} {has}", **variables)
    assert "no interface nope0 (lab_nics)" in output
    assert ("--no-install-recommends chrony" in output) == bool(missing)
    assert "apt-get install" not in output or missing


def test_packages_that_a_lab_was_given_go_at_teardown(tmp_path: Path) -> None:
    play(tmp_path, "lab_preflight", 2, LABORATORY, **laboratory(tmp_path))
    there = set(LABORATORY.split())
    assert fake_apt.packages(tmp_path / "state").keys() == there | {"chrony", "libedit"}
    nobody = tmp_path / "bin/pgrep"  # the lab's agents that are here are those of other tests
    nobody.write_text("#!/bin/sh\nexit 1\n")
    nobody.chmod(0o755)
    play(tmp_path, "lab_teardown", 0, None, **laboratory(tmp_path))
    assert fake_apt.packages(tmp_path / "state").keys() == there and not (tmp_path / "srv").exists()


@pytest.mark.parametrize("way_back", [True, False])
def test_preflight_tells_of_a_boot_loader_without_a_way_back_before_it_installs_anything(
    tmp_path: Path, way_back: bool
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/grub-probe").write_text(GRUB_PROBE % ("" if way_back else "lvm", "ext2", 0))
    (tmp_path / "bin/grub-probe").chmod(0o755)
    variables = laboratory(tmp_path) | {"lab_kernel_mode": "deb", "lab_kernel_release": "9.9.9-other"}
    output = play(tmp_path, "lab_preflight", 2, LABORATORY, **variables)
    assert ("cannot boot a kernel just once" in output) == (not way_back)
    assert ("chrony" in fake_apt.packages(tmp_path / "state")) == way_back


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
