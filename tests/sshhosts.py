# SPDX-License-Identifier: Apache-2.0
"""Hosts to reach over SSH, made of network namespaces: a control address each, and test interfaces on a common switch.

Their kernel is this machine's, so what belongs to a kernel cannot be tried on them. Everything is undone by `close`.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests import reaper
from tests.waiting import wait_until

TOOLS = ("ip", "sshd", "ssh", "ssh-keygen", "tcpdump")
USER_ID = 54321
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


def why_not() -> str:
    """Why such hosts cannot be made here; empty where they can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    missing = [tool for tool in TOOLS if shutil.which(tool, path=PATH) is None]
    return f"not installed: {', '.join(missing)}" if missing else ""


needs_ssh_hosts = pytest.mark.skipif(bool(why_not()), reason=why_not() or "can be made")


def run(*command: str | Path, check: bool = True) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env={**os.environ, "PATH": PATH})
    if check and done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))}: {done.stderr.strip()}")
    return done.stdout


class SshHosts:
    """names[i] is reached at 10.213.N.2i+2:22 and has the test address 192.0.2.1i on `test0`."""

    def __init__(
        self, folder: Path, names: list[str], hidden: Sequence[Path] = (), environment: str = "", user: str = ""
    ) -> None:
        """hidden: folders of this machine that the hosts do not see; environment: sshd's SetEnv for their sessions

        user: one that only the hosts have, who logs in with the key and may use sudo without a password
        """
        self.folder, self.names, self.tag = folder, names, reaper.tag(os.getpid())
        self._hidden, self._environment, self._user = tuple(hidden), environment, user
        self._sshd: dict[str, subprocess.Popen[bytes]] = {}
        self._net = os.getpid() % 200 + 20
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        self.key, self.known_hosts = folder / "key", folder / "known_hosts"
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.key)
        self._switch = f"{self.tag}sw"
        run("ip", "netns", "add", self._switch)
        self._in(self._switch, "ip", "link", "add", "br0", "type", "bridge")
        self._in(self._switch, "ip", "link", "set", "br0", "up")
        for name in names:
            self._make(name)

    def netns(self, name: str) -> str:
        return f"{self.tag}{name}"

    def control(self, name: str) -> str:
        return f"10.213.{self._net}.{4 * self.names.index(name) + 2}"

    def address(self, name: str) -> str:
        return f"192.0.2.{10 + self.names.index(name)}"

    def root(self, name: str) -> Path:
        return self.folder / name / "root"

    def _in(self, netns: str, *command: str | Path) -> str:
        return run("ip", "netns", "exec", netns, *command)

    def inside(self, name: str, *command: str | Path) -> str:
        return self._in(self.netns(name), *command)

    def _make(self, name: str) -> None:
        netns, index = self.netns(name), self.names.index(name)
        self.root(name).mkdir(parents=True)
        run("ip", "netns", "add", netns)
        here, there = f"{self.tag}c{index}", "ctl0"
        run("ip", "link", "add", here, "type", "veth", "peer", "name", there, "netns", netns)
        run("ip", "addr", "add", f"10.213.{self._net}.{4 * index + 1}/30", "dev", here)
        run("ip", "link", "set", here, "up")
        run("ip", "-n", netns, "addr", "add", f"{self.control(name)}/30", "dev", there)
        run("ip", "-n", netns, "link", "set", there, "up")
        run("ip", "-n", netns, "link", "set", "lo", "up")
        run(
            "ip",
            "-n",
            netns,
            "link",
            "add",
            "test0",
            "type",
            "veth",
            "peer",
            "name",
            f"p{index}",
            "netns",
            self._switch,
        )
        run("ip", "-n", self._switch, "link", "set", f"p{index}", "master", "br0", "up")
        run("ip", "-n", netns, "addr", "add", f"{self.address(name)}/24", "dev", "test0")
        run("ip", "-n", netns, "link", "set", "test0", "up")
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / name / "host_key")
        public = (self.folder / name / "host_key.pub").read_text().split()[:2]
        with open(self.known_hosts, "a") as known:
            known.write(f"{self.control(name)} {' '.join(public)}\n")
        (self.folder / name / "boot_id").write_text(f"00000000-0000-0000-0000-{index:012d}\n")
        self.start(name)

    def start(self, name: str, environment: str = "") -> None:
        """Start the host's sshd; `environment` is an sshd SetEnv of its sessions."""
        environment = environment or self._environment
        folder = self.folder / name
        # Not the user's: their shell's start-up files would run in each session, and die half-way with the host.
        home = "" if "HOME=" in environment else f"HOME={'/dev/shm' if self._user else f'{folder}/home'} "
        shutil.copy(f"{self.key}.pub", folder / "authorized_keys")
        (folder / "home").mkdir(exist_ok=True)
        (folder / "sshd_config").write_text(
            f"ListenAddress {self.control(name)}:22\nHostKey {folder}/host_key\n"
            f"AuthorizedKeysFile {'/dev/shm' if self._user else folder}/authorized_keys\n"
            "PasswordAuthentication no\nKbdInteractiveAuthentication no\nUsePAM no\nStrictModes no\nPidFile none\n"
            "PermitRootLogin prohibit-password\nSubsystem sftp internal-sftp\nMaxStartups 100\n"
            f"SetEnv {home}{environment}\n"
        )
        script = (
            f"mount --bind {folder}/boot_id /proc/sys/kernel/random/boot_id && mkdir -p /run/warpbed && "
            "mount -t tmpfs -o mode=0755 tmpfs /run/warpbed && "
            # what libfaketime keeps there ends with the host, which is killed and cannot tidy up
            "mount -t tmpfs tmpfs /dev/shm && "
            + self._user_script(folder)
            + "".join(f"mount -t tmpfs tmpfs {shlex.quote(str(place))} && " for place in self._hidden)
            + f"exec /usr/sbin/sshd -D -e -f {folder}/sshd_config"
        )
        with open(folder / "sshd.log", "ab") as log:
            self._sshd[name] = subprocess.Popen(
                ["ip", "netns", "exec", self.netns(name), "unshare", "-m", "--propagation", "private", "sh", "-c",
                    script],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        wait_until(lambda: self._answers(name), 60, say=(folder / "sshd.log").read_text)

    def _user_script(self, folder: Path) -> str:
        """Give the host, and nobody else, its user; the rest of the script follows."""
        if not self._user:
            return ""
        etc = folder / "etc"
        etc.mkdir(exist_ok=True)
        (etc / "passwd").write_text(
            Path("/etc/passwd").read_text() + f"{self._user}:*:{USER_ID}:{USER_ID}::/dev/shm:/bin/sh\n"
        )
        (etc / "sudoers").unlink(missing_ok=True)
        (etc / "sudoers").write_text(f"Defaults env_reset\n{self._user} ALL=(ALL:ALL) NOPASSWD: ALL\n")
        (etc / "sudoers").chmod(0o440)
        binds = "".join(f"mount --bind {etc}/{name} /etc/{name} && " for name in ("passwd", "sudoers"))
        # sshd reads the key as the user, who cannot look into the folder of a test
        return f"{binds}install -m 0644 {folder}/authorized_keys /dev/shm/authorized_keys && "

    def _answers(self, name: str) -> bool:
        try:
            socket.create_connection((self.control(name), 22), 1).close()
        except OSError:
            return False
        return True

    def kill(self, name: str) -> None:
        """What a power cut does: every process of the host is gone at once."""
        for _ in range(3):
            for pid in self._pids(name):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
        process = self._sshd.pop(name, None)
        if process is not None:
            process.kill()
            process.wait()

    def reboot(self, name: str) -> None:
        self.kill(name)
        boot = self.folder / name / "boot_id"
        boot.write_text(boot.read_text().replace("00000000-", "11111111-"))
        self.start(name)

    def cut(self, name: str) -> None:
        """Cut the control connection; what the host does goes on."""
        run("ip", "link", "set", f"{self.tag}c{self.names.index(name)}", "down")

    def mend(self, name: str) -> None:
        run("ip", "link", "set", f"{self.tag}c{self.names.index(name)}", "up")

    def _pids(self, name: str) -> list[int]:
        """Processes in the host's network namespace, as `ip netns pids` finds them; tests look many times a second."""
        try:
            host = os.stat(f"/run/netns/{self.netns(name)}")
        except FileNotFoundError:
            return []
        pids = []
        for entry in os.listdir("/proc"):
            if entry.isdecimal():
                with contextlib.suppress(OSError):  # it has ended
                    if os.path.samestat(os.stat(f"/proc/{entry}/ns/net"), host):
                        pids.append(int(entry))
        return pids

    def processes(self, name: str) -> list[str]:
        """Command lines of the host's processes that are not of its SSH service."""
        pids = []
        for pid in self._pids(name):
            try:
                line = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
            except OSError:
                continue
            if line and "sshd" not in line:
                pids.append(line)
        return pids

    def close(self) -> None:
        for name in self.names:
            self.kill(name)
            run("umount", "-q", self.root(name), check=False)
            run("ip", "netns", "del", self.netns(name), check=False)
            run("ip", "link", "del", f"{self.tag}c{self.names.index(name)}", check=False)
        run("ip", "netns", "del", self._switch, check=False)
