# SPDX-License-Identifier: Apache-2.0
"""Run programs and move files on another machine by SSH: keys only, host keys checked, no shell interpolation."""

from __future__ import annotations

import io
import shlex
import subprocess
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from base.errors import WarpbedError
from base.paths import ROOT, sent_files
from plan.console import MODULES, SOURCE

SSH_FAILED = 255
TIMEOUT_S = 120.0
FINAL = ("Permission denied", "Host key verification failed", "REMOTE HOST IDENTIFICATION HAS CHANGED")


class RemoteError(WarpbedError):
    """A command that failed over there, or a connection that failed; `is_final` where trying again is of no use."""

    def __init__(self, text: str, is_final: bool = False) -> None:
        super().__init__(text)
        self.is_final = is_final


@dataclass(frozen=True)
class Remote:
    """The way to a machine. alias: the name under which known_hosts has its key."""

    address: str
    port: int
    user: str
    identity: Path
    known_hosts: Path
    alias: str

    def command(self, *words: str) -> list[str]:
        """ssh's command line for a program with arguments."""
        options = {
            "UserKnownHostsFile": str(self.known_hosts),
            "GlobalKnownHostsFile": "/dev/null",
            "HostKeyAlias": self.alias,
            "StrictHostKeyChecking": "yes",
            "IdentitiesOnly": "yes",
            "PasswordAuthentication": "no",
            "BatchMode": "yes",
            "ConnectTimeout": "20",
            "ServerAliveInterval": "10",
            "ServerAliveCountMax": "6",
            "LogLevel": "ERROR",
        }
        line = ["ssh", "-F", "none", "-T", "-i", str(self.identity), "-p", str(self.port)]
        line += [word for name, value in options.items() for word in ("-o", f'{name}="{value}"')]
        return [*line, f"{self.user}@{self.address}", "--", shlex.join(words)]

    def run(self, *words: str, data: bytes | None = None, timeout_s: float = TIMEOUT_S) -> bytes:
        """Run a program to its end; returns its output. Raises RemoteError."""
        try:
            done = subprocess.run(
                self.command(*words), input=data if data is not None else b"", capture_output=True, timeout=timeout_s
            )
        except subprocess.TimeoutExpired as error:
            raise RemoteError(f"{words[0]}: not done after {timeout_s:.0f} s") from error
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip() or f"exit code {done.returncode}"
            raise RemoteError(f"{words[0]}: {said}", is_final=any(text in said for text in FINAL))
        return done.stdout

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        """Start a program that ends when its standard input does."""
        return subprocess.Popen(
            self.command(*words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0
        )

    def put(self, files: Mapping[str, Path | bytes]) -> None:
        """Send files, by their absolute paths over there."""
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            for name, content in files.items():
                data = content if isinstance(content, bytes) else content.read_bytes()
                entry = tarfile.TarInfo(name.lstrip("/"))
                entry.size, entry.mode = len(data), 0o644
                archive.addfile(entry, io.BytesIO(data))
        self.run("tar", "-x", "-C", "/", data=buffer.getvalue())

    def get(self, folder: str, target: Path) -> None:
        """Fetch the files of a folder over there into one here."""
        data = self.run("tar", "-c", "-C", folder, ".", timeout_s=600)
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for entry in archive:
                name = entry.name.removeprefix("./")
                content = archive.extractfile(entry) if entry.isfile() and "/" not in name else None
                if content is not None:  # plain files only: what a machine sends must not land anywhere else
                    (target / name).write_bytes(content.read())


def agent_files(modules: Iterable[Path]) -> dict[str, Path | bytes]:
    """What a machine needs to execute plans: the agent's source and the kernel modules."""
    files: dict[str, Path | bytes] = {}
    for file in sent_files():
        files[f"{SOURCE}/{file}"] = ROOT / file
    for module in modules:
        files[f"{MODULES}/{module.name}"] = module
    return files


def agent_command(*arguments: str) -> list[str]:
    """The agent's first program over there (agent.host)."""
    environment = [
        f"PYTHONPATH={SOURCE}",
        "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME=/root",
        "LANG=C.UTF-8",
        "TERM=dumb",
    ]
    return ["env", "-i", *environment, "/usr/bin/python3", "-B", "-P", "-m", "agent.host", *arguments]
