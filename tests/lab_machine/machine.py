# SPDX-License-Identifier: Apache-2.0
"""Start the test's lab machine and reach it; what it writes to its disk is gone with it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from base.linux import die_with_parent
from base.paths import ROOT
from hosts.remote import Remote, RemoteError
from tests.lab_machine import disk
from tests.waiting import wait_until

MEMORY_MIB = 1024
CPU = "Nehalem"
"""Without vectors of 256 bits, page tables of five levels and more that libraries and kernels use where they find it, and that
costs an emulation more than it saves: a boot takes 25 s of CPU time instead of 28, one of Ansible's tasks a tenth less."""
UP_S = 400.0
"""An emulated CPU boots a Debian in about half a minute where nothing else runs."""
BOOTED = "LAB MACHINE booted "


@dataclass(frozen=True)
class LabMachine:
    """A running machine. `folder` is where its keys are, `console` the file with what it says."""

    remote: Remote
    folder: Path
    console: Path
    process: subprocess.Popen[bytes]

    def boots(self) -> list[str]:
        """The kernels that have come up so far, in order."""
        lines = self.console.read_text(errors="replace").splitlines()
        return [line.partition(BOOTED)[2].strip() for line in lines if BOOTED in line]

    def run(self, *argv: str) -> str:
        return self.remote.run(*argv).decode()

    def inventory(self, folder: Path, **more: Any) -> Path:
        entry = {
            "ansible_host": self.remote.address,
            "ansible_port": self.remote.port,
            "ansible_user": "root",
            "ansible_ssh_private_key_file": str(self.remote.identity),
            "ansible_python_interpreter": disk.WARM_PYTHON,
            # Ansible's own, but without compression, which an emulated CPU has no time for
            "ansible_ssh_args": "-o ControlMaster=auto -o ControlPersist=60s",
            "ansible_ssh_common_args": f"-o UserKnownHostsFile={self.remote.known_hosts} -o HostKeyAlias={self.remote.alias}",
            "lab_become": False,
            "lab_node": "s1",
            "lab_nics": {},
            "lab_known_hosts": str(self.remote.known_hosts),
            **more,
        }
        file = folder / "hosts.yml"
        file.write_text(json.dumps({"all": {"children": {"lab": {"hosts": {"machine": entry}}}}}))
        return file


def where() -> Path:
    """The folder of the disk; raises FileNotFoundError with what to do where there is none."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "tests.lab_machine.disk", "--where"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    place = json.loads(done.stdout)
    if not place["exists"]:
        raise FileNotFoundError(f"{place['path']} is not there; playbooks/test_environment.yml makes it (as root)")
    return Path(place["path"])


def _answers(remote: Remote) -> bool:
    try:
        remote.run("true")
    except RemoteError:
        return False
    return True


@contextlib.contextmanager
def running(folder: Path, cpu: str = CPU, more: Sequence[str] = ()) -> Iterator[LabMachine]:
    """A machine that has booted from its disk; cpu: QEMU's name of its model; more: of QEMU's arguments."""
    place, console = where(), folder / "console"
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    line = [
        "qemu-system-x86_64", "-M", "pc", "-accel", "tcg", "-cpu", cpu, "-m", f"{MEMORY_MIB}M", "-nodefaults",
        "-no-user-config", "-display", "none", "-device", "VGA", "-serial", f"file:{console}",
        "-drive", f"file={place / 'boot.img'},format=raw,if=ide,snapshot=on",
        "-drive", f"file={place / 'disk.img'},format=raw,if=virtio,snapshot=on", "-device", "virtio-rng-pci",
        "-netdev", f"user,id=control,restrict=on,hostfwd=tcp:127.0.0.1:{port}-10.0.2.15:22",
        "-device", "virtio-net-pci,netdev=control", *more,
    ]  # fmt: skip
    process = subprocess.Popen(line, stdin=subprocess.DEVNULL, preexec_fn=die_with_parent, cwd="/")
    remote = Remote("127.0.0.1", port, "root", place / "id_ed25519", place / "known_hosts", disk.ALIAS)
    try:
        wait_until(
            lambda: console.exists() and BOOTED in console.read_text(errors="replace") and _answers(remote),
            UP_S,
            while_running=process,
            say=lambda: console.read_text(errors="replace")[-2000:],
            every_s=1,
        )
        yield LabMachine(remote, place, console, process)
    finally:
        process.kill()
        process.wait()
