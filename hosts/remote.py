# SPDX-License-Identifier: Apache-2.0
"""Run programs and move files on another machine by SSH: keys only, host keys checked, no shell interpolation."""

from __future__ import annotations

import io
import shlex
import subprocess
import tarfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from base.errors import WarpbedError
from base.paths import ROOT, sent_files
from hosts import answers
from hosts.archive import Limits, Readable, TooLargeError, unpack
from hosts.deadline import Deadline
from plan.console import MODULES, SOURCE

SSH_FAILED = 255
TIMEOUT_S = 120.0
FETCH_TIMEOUT_S = 600.0
ALIVE_S = 5
"""How often a silent machine is asked whether it is there."""
LARGEST_TRAILER_BYTES = 1 << 20
LIMITS = Limits(largest={".json": 64 << 20, ".log": 64 << 20, ".format": 1 << 20})
"""Of a run's files on one machine. What is read here as a whole, and not by a collector, fits in memory."""
FINAL = ("Permission denied", "Host key verification failed", "REMOTE HOST IDENTIFICATION HAS CHANGED")


class RemoteError(WarpbedError):
    """A command that failed over there, or a connection that failed; `is_final` where trying again is of no use."""

    def __init__(self, text: str, is_final: bool = False) -> None:
        super().__init__(text)
        self.is_final = is_final


class UnreachableError(RemoteError):
    """The machine did not answer, or the connection was cut; it may answer later."""


@dataclass(frozen=True)
class Remote:
    """The way to a machine.

    known_hosts, alias: file with its key, and the name under which it stands there; without them those of the user's own
    SSH configuration
    become: programs run as root, by sudo
    connect_s, silence_s: how long a connection may take, and how long an established one may be silent
    extra: further arguments of ssh
    """

    address: str
    port: int
    user: str | None
    identity: Path | None
    known_hosts: Path | None = None
    alias: str = ""
    become: bool = False
    connect_s: int = 20
    silence_s: int = 60
    extra: tuple[str, ...] = ()

    def command(self, *arguments: str) -> list[str]:
        """ssh's command line for a program with arguments. Passwords are never part of it."""
        options = {
            "BatchMode": "yes",
            "StrictHostKeyChecking": "yes",
            "ConnectTimeout": str(self.connect_s),
            "ServerAliveInterval": str(ALIVE_S),
            "ServerAliveCountMax": str(self.silence_s // ALIVE_S),
        }
        line = ["ssh", "-T", "-p", str(self.port)]
        if self.known_hosts is not None:
            line += ["-F", "none"]
            options |= {
                "UserKnownHostsFile": str(self.known_hosts),
                "GlobalKnownHostsFile": "/dev/null",
                "HostKeyAlias": self.alias,
                "PasswordAuthentication": "no",
                "LogLevel": "ERROR",
            }
        if self.identity is not None:
            line += ["-i", str(self.identity)]
            options["IdentitiesOnly"] = "yes"
        line += ["-l", self.user] if self.user else []
        line += [argument for name, value in options.items() for argument in ("-o", f'{name}="{value}"')]
        root = ["sudo", "-n"] if self.become else []
        return [*line, *self.extra, "--", self.address, shlex.join([*root, *arguments])]

    def call(
        self, *arguments: str, data: bytes = b"", timeout_s: float = TIMEOUT_S
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a program to its end, whatever its exit code. Raises UnreachableError."""
        try:
            completed = answers.call(self.command(*arguments), data, timeout_s)
        except subprocess.TimeoutExpired as error:
            raise UnreachableError(f"not done after {timeout_s:g} s") from error
        except answers.TooMuchError as error:
            raise UnreachableError(str(error)) from error
        if completed.returncode == SSH_FAILED:
            message = _message(completed.stderr, completed.returncode)
            raise UnreachableError(message, is_final=any(text in message for text in FINAL))
        return completed

    def run(self, *arguments: str, data: bytes = b"", timeout_s: float = TIMEOUT_S) -> bytes:
        """Run a program to its end; returns its output. Raises RemoteError."""
        try:
            completed = self.call(*arguments, data=data, timeout_s=timeout_s)
        except UnreachableError as error:
            raise UnreachableError(f"{arguments[0]}: {error}", error.is_final) from error
        if completed.returncode:
            raise RemoteError(f"{arguments[0]}: {_message(completed.stderr, completed.returncode)}")
        return completed.stdout

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a program that ends when its standard input does."""
        return subprocess.Popen(
            self.command(*arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0
        )

    def receive(
        self,
        *arguments: str,
        take: Callable[[Readable], None],
        data: bytes = b"",
        limit_s: float = FETCH_TIMEOUT_S,
        timeout_s: float = TIMEOUT_S,
        heed: Callable[[], None] = lambda: None,
    ) -> None:
        """Hand a program's output over as it comes.

        limit_s: how long it may take, and longer by what has come (hosts.deadline)
        timeout_s: from the output's end to the program's
        heed: called every second; what it raises ends this
        Raises UnreachableError where the program fails, its output is cut or does not end; what `take` raises passes.
        """
        problem: Exception | None = None
        deadline = Deadline(limit_s, heed)
        pipe = subprocess.PIPE
        process = subprocess.Popen(self.command(*arguments), stdin=pipe, stdout=pipe, stderr=pipe)
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        errors = answers.Printed(process.stderr, answers.LAST_BYTES)
        with process.stdout, deadline.over(process):
            try:
                process.stdin.write(data)
                process.stdin.close()
                take(deadline.counted(process.stdout))
                _read_to_the_end(process.stdout)
                process.wait(timeout_s)
            except (tarfile.TarError, BrokenPipeError, subprocess.TimeoutExpired) as error:
                problem = error
            finally:
                process.kill()
                process.wait()
        message = errors.kept()
        if problem is not None or process.returncode:
            reason = deadline.reason or last_line(message) or str(problem or f"exit code {process.returncode}")
            raise UnreachableError(reason, is_final=any(text in reason for text in FINAL)) from problem

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

    def get(
        self, folder: str, target: Path, limit_s: float = FETCH_TIMEOUT_S, heed: Callable[[], None] = lambda: None
    ) -> None:
        """Fetch the files of a folder over there into one here as they come; folders in it are left out.

        heed: called every second; what it raises ends this
        Raises UnreachableError, also where the files do not come to an end (`receive`), RemoteError where they are too large.
        """

        def take(stream: Readable) -> None:
            unpack(stream, target, lambda name: None, LIMITS)

        try:
            self.receive("tar", "-c", "-C", folder, ".", take=take, limit_s=limit_s, heed=heed)
        except TooLargeError as error:
            raise RemoteError(f"tar: the files of {folder}: {error}") from error
        except UnreachableError as error:
            raise UnreachableError(f"tar: the files of {folder}: {error}", error.is_final) from error


def _read_to_the_end(stream: Readable) -> None:
    """Raises tarfile.ReadError where more follows than the padding of an archive."""
    left = LARGEST_TRAILER_BYTES
    while chunk := stream.read(1 << 16):
        left -= len(chunk)
        if left < 0:
            raise tarfile.ReadError("it goes on after its end")


def last_line(output: bytes) -> str:
    """The last line of a program's output that is not empty."""
    lines = [line.strip() for line in output.decode(errors="replace").strip().splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _message(errors: bytes, code: int) -> str:
    return errors.decode(errors="replace").strip() or f"exit code {code}"


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
