# SPDX-License-Identifier: Apache-2.0
"""Kernels and modules on a lab machine that has a disk, a boot loader and a distribution's kernel of its own.

The machine is a QEMU with an emulated CPU, reached over SSH as a lab's are; each step of a test starts from what the one
before has left.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hosts.vm.builds import Builds
from tests import lab, plays, recap
from tests.lab_machine.machine import LabMachine, running

pytestmark = [
    pytest.mark.real_host,
    pytest.mark.slow,
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="the machine's disk is made by root"),
    pytest.mark.timeout(5400),
]
SEEN = lab.ROOT / "playbooks/roles/lab_kernel/files/seen.py"
BROKEN = "9.9.9-warpbed-broken"
BOOT_S = 900
"""Longer than any boot of an emulated CPU, so that a slow machine is not taken for one that does not come back."""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabMachine]:
    """One machine for both tests, since its boot takes half a minute; each of them has to leave it as it was."""
    with running(tmp_path_factory.mktemp("machine")) as machine:
        yield machine


def test_a_kernel_that_does_not_boot_gives_way_one_that_does_is_proven_and_teardown_goes_back(
    machine: LabMachine, builds: Builds, tmp_path: Path
) -> None:
    stock = state(machine)
    a_kernel_that_does_not_boot_gives_way_to_the_one_before(machine, stock["kernel"].strip(), builds, tmp_path)
    a_package_is_booted_once_proven_and_only_then_the_default(machine, builds, tmp_path)
    teardown_goes_back_to_the_distributions_kernel_and_leaves_nothing(machine, stock, tmp_path)


def test_dkms_builds_for_the_distributions_kernel_and_teardown_removes_it(machine: LabMachine, tmp_path: Path) -> None:
    dkms_builds_for_the_distributions_kernel_and_teardown_removes_it(machine, state(machine), tmp_path)


STATE = {
    "kernel": "uname -r",
    "packages": "dpkg-query --show",
    "boot": "ls /boot /etc/default/grub.d 2>&1 || true; cat /boot/grub/grubenv 2>/dev/null || echo no variables",
    "folder": "ls -d /var/lib/warpbed 2>/dev/null || true",
    "modules": "find /usr/src /var/lib/dkms /lib/modules -mindepth 1 -maxdepth 1 -type d | sort",
}


def state(machine: LabMachine) -> dict[str, str]:
    """In one connection: each costs an emulated CPU more than a second."""
    script = "; ".join(f"printf '\\0'; {command}" for command in STATE.values())
    return dict(zip(STATE, machine.run("sh", "-c", f"set -e; {script}").split("\0")[1:], strict=True))


def play(machine: LabMachine, folder: Path, playbook: str, *arguments: str, code: int = 0, **more: Any) -> str:
    inventory = machine.inventory(folder, **more)
    return plays.run(playbook, "-i", inventory, *arguments, code=code, timeout_s=None, counted=True)


def a_package_is_booted_once_proven_and_only_then_the_default(
    machine: LabMachine, builds: Builds, tmp_path: Path
) -> None:
    before, boots = state(machine), len(machine.boots())
    release = builds.kernel_facts["kernel_release"]
    wanted: dict[str, Any] = {
        "lab_kernel_mode": "deb",
        "lab_kernel_build": str(builds.kernel),
        "lab_kernel_algorithms": ["medley", "perack"],
        "lab_kernel_boot_s": BOOT_S,
    }
    output = play(machine, tmp_path, "lab_kernel", "--check", **wanted)
    assert f"would install linux-image-{release}_" in output and state(machine) == before
    play(machine, tmp_path, "lab_kernel", **wanted)
    assert machine.run("uname", "-r").strip() == release == machine.boots()[-1]
    built = {m["name"]: m["srcversion"] for m in builds.kernel_facts["modules"]}
    assert machine.run("cat", "/sys/module/tcp_medley/srcversion").strip() == built["tcp_medley"]
    proof = json.loads(machine.remote.run("python3", "-I", "-c", SEEN.read_text(), data=b"{}"))
    assert {name: proof["modules"][name] for name in ("medley", "lbc", "perack", "reno")} == {
        "medley": built["tcp_medley"],
        "lbc": built["tcp_lbc"],
        "perack": built["tcp_lbc"],
        "reno": "",
    }
    assert release in machine.run("grub-editenv", "-", "list")
    again = play(machine, tmp_path, "lab_kernel", **wanted)
    recap.assert_changes_nothing(again)
    assert len(machine.boots()) == boots + 1


def a_kernel_that_does_not_boot_gives_way_to_the_one_before(
    machine: LabMachine, release: str, builds: Builds, tmp_path: Path
) -> None:
    """release: the kernel that runs, and is to run afterwards."""
    package = broken_package(builds, tmp_path)
    wanted: dict[str, Any] = {"lab_kernel_mode": "deb", "lab_kernel_deb": [str(package)], "lab_kernel_release": BROKEN,
              "lab_kernel_panic_s": 3, "lab_kernel_boot_s": BOOT_S}  # fmt: skip
    output = play(machine, tmp_path, "lab_kernel", code=2, **wanted)
    one_line = " ".join(output.split())
    assert (
        f"did not come back with {BROKEN} within {BOOT_S} s" in one_line
        and f"({release} runs); the next boot takes {release}" in one_line
    )
    assert "Unable to mount root fs" in machine.console.read_text(errors="replace")
    assert machine.boots()[-2:] == [release, release]
    assert BROKEN not in machine.run("grub-editenv", "-", "list")


def broken_package(builds: Builds, folder: Path) -> Path:
    """Our kernel as one that was packed wrongly: it has an initial RAM disk with nothing in it, and is to find its root by that."""
    (own,) = (builds.kernel / "packages").glob("linux-image-*.deb")
    release, root = builds.kernel_facts["kernel_release"], folder / "broken"
    subprocess.run(["dpkg-deb", "--raw-extract", own, root], check=True)
    for name in ("lib", "usr"):  # files of the package that is installed already
        shutil.rmtree(root / name)
    for path in list((root / "boot").iterdir()):
        path.rename(path.with_name(path.name.replace(release, BROKEN)))
    (root / f"boot/initrd.img-{BROKEN}").write_bytes(bytes(4096))
    (root / "DEBIAN/md5sums").unlink(missing_ok=True)
    for name in ("control", "postinst", "postrm", "preinst", "prerm"):
        file = root / "DEBIAN" / name
        file.write_text(file.read_text().replace(release, BROKEN))
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", root, folder / "broken.deb"], check=True)
    return folder / "broken.deb"


def teardown_goes_back_to_the_distributions_kernel_and_leaves_nothing(
    machine: LabMachine, stock: dict[str, str], tmp_path: Path
) -> None:
    remove = ("-e", "lab_teardown_modules=true")
    output = " ".join(play(machine, tmp_path, "teardown", "--check", *remove).split())
    assert f"would go back to {stock['kernel'].strip()} and remove the kernels" in output
    play(machine, tmp_path, "teardown", *remove)
    assert state(machine) == stock
    assert machine.boots()[-1] == stock["kernel"].strip() == machine.boots()[0]
    recap.assert_changes_nothing(play(machine, tmp_path, "teardown", *remove))


def dkms_builds_for_the_distributions_kernel_and_teardown_removes_it(
    machine: LabMachine, stock: dict[str, str], tmp_path: Path
) -> None:
    wanted: dict[str, Any] = {"lab_kernel_mode": "dkms", "lab_kernel_algorithms": ["medley"]}
    play(machine, tmp_path, "lab_kernel", **wanted)
    assert "medley" in machine.run("cat", "/proc/sys/net/ipv4/tcp_available_congestion_control")
    assert machine.run("modinfo", "-F", "filename", "tcp_medley").startswith(f"/lib/modules/{stock['kernel'].strip()}/")
    recap.assert_changes_nothing(play(machine, tmp_path, "lab_kernel", **wanted))
    remove = ("-e", "lab_teardown_modules=true")
    output = " ".join(play(machine, tmp_path, "teardown", "--check", *remove).split())
    assert "would unload the modules that DKMS has built, and remove them" in output
    assert "medley" in machine.run("cat", "/proc/sys/net/ipv4/tcp_available_congestion_control")
    play(machine, tmp_path, "teardown", *remove)
    assert state(machine) == stock
    assert "tcp_medley" not in machine.run("lsmod")
