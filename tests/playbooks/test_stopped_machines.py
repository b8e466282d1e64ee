# SPDX-License-Identifier: Apache-2.0
"""A machine whose SSH service stands still in the middle of a task: Ansible gives it up instead of waiting for ever."""

from __future__ import annotations

import configparser
import getpass
import json
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from base.linux import die_with_parent
from tests import lab
from tests.plays import BIN
from tests.waiting import wait_until

SSHD = "/usr/sbin/sshd"
GIVEN_UP_S = 60
"""hosts/remote.py's own limit."""

pytestmark = pytest.mark.skipif(
    not os.access(SSHD, os.X_OK) or shutil.which("ssh") is None, reason="openssh-server or openssh-client is missing"
)


def ssh_arguments() -> str:
    settings = configparser.ConfigParser()
    settings.read(lab.ROOT / "ansible.cfg")
    return settings["ssh_connection"]["ssh_args"]


def option(name: str) -> int:
    return int(re.findall(rf"-o {name}=(\d+)", ssh_arguments())[0])


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Path]:
    """An SSH service of this user, and the inventory that names it."""
    for name in ("key", "host_key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (tmp_path / "known_hosts").write_text(f"[127.0.0.1]:{port} {(tmp_path / 'host_key.pub').read_text()}")
    (tmp_path / "sshd_config").write_text(
        f"ListenAddress 127.0.0.1:{port}\nHostKey {tmp_path}/host_key\nAuthorizedKeysFile {tmp_path}/key.pub\n"
        "StrictModes no\nUsePAM no\nPidFile none\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"
    )
    entry = {
        "ansible_host": "127.0.0.1",
        "ansible_port": port,
        "ansible_user": getpass.getuser(),
        "ansible_ssh_private_key_file": str(tmp_path / "key"),
        "ansible_ssh_common_args": f"-F none -o UserKnownHostsFile={tmp_path}/known_hosts",
    }
    (tmp_path / "hosts.yml").write_text(json.dumps({"all": {"hosts": {"m": entry}}}))
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    line = [SSHD, "-D", "-e", "-f", str(tmp_path / "sshd_config")]
    with (
        open(tmp_path / "sshd.log", "wb") as log,
        subprocess.Popen(line, stdout=log, stderr=log, preexec_fn=die_with_parent) as service,
    ):
        try:
            wait_until(lambda: "listening" in (tmp_path / "sshd.log").read_text(), while_running=service)
            yield tmp_path / "hosts.yml"
        finally:
            for pid in descendants(service.pid):
                os.kill(pid, signal.SIGKILL)
            service.kill()


def descendants(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [every for child in children for every in (int(child), *descendants(int(child)))]


def test_a_machine_that_does_not_answer_is_given_up_after_a_minute() -> None:
    assert 0 < option("ServerAliveInterval") * option("ServerAliveCountMax") <= GIVEN_UP_S


def test_a_machine_that_stands_still_in_the_middle_of_a_task_is_unreachable(machine: Path, tmp_path: Path) -> None:
    quickly = re.sub(r"(ServerAliveInterval|ServerAliveCountMax)=\d+", r"\1=1", ssh_arguments())
    process = subprocess.Popen(
        [
            BIN / "ansible",
            "m",
            "-i",
            machine,
            "-m",
            "ansible.builtin.raw",
            "-a",
            f"echo $PPID >{tmp_path}/session; sleep 600",
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={
            **os.environ,
            "ANSIBLE_CONFIG": str(lab.ROOT / "ansible.cfg"),
            "ANSIBLE_SSH_ARGS": quickly,
            "ANSIBLE_LOCAL_TEMP": f"{tmp_path}/local",
            "ANSIBLE_SSH_CONTROL_PATH_DIR": f"{tmp_path}/c",
            "ANSIBLE_STDOUT_CALLBACK": "ansible.builtin.default",
        },
    )
    try:
        session = tmp_path / "session"
        wait_until(lambda: session.exists() and session.read_text().strip(), 60, while_running=process)
        os.kill(int(session.read_text()), signal.SIGSTOP)
        said, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 4 and "UNREACHABLE" in said, said
