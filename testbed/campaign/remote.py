# SPDX-License-Identifier: Apache-2.0
"""Ask the agent on a host (agent.endpoint) over SSH, one request per connection, host keys checked."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tarfile
import tempfile
import zlib
from pathlib import Path
from typing import IO, Any

from base.errors import WarpbedError
from testbed.campaign.ends import End

CONNECT_TIMEOUT_S = 10
REQUEST_TIMEOUT_S = 60.0
TRACE_TIMEOUT_S = 150.0
SSH_FAILED = 255
FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,80}")
LARGEST_FETCH_BYTES = 4 << 30


class UnreachableError(WarpbedError):
    """The host did not answer; it may later."""


class RefusedError(WarpbedError):
    """The host answered that it cannot do what was asked; asking again would not help."""


def command(end: End) -> list[str]:
    """The ssh command line; nothing of it comes from a result, and passwords are never part of it."""
    line = [
        "ssh",
        "-T",
        "-o",
        "BatchMode=yes",
        "-o",
        "StrictHostKeyChecking=yes",
        "-o",
        f"ConnectTimeout={CONNECT_TIMEOUT_S}",
    ]
    line += ["-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=4", "-p", str(end.ssh_port)]
    line += ["-l", end.user] if end.user else []
    line += ["-i", end.key, "-o", "IdentitiesOnly=yes"] if end.key else []
    line += [*end.ssh_options, "--", end.host]
    return [*line, *(["sudo", "-n"] if end.become else []), "/usr/bin/python3", "-I", end.agent]


def ask(name: str, end: End, do: str, timeout_s: float = REQUEST_TIMEOUT_S, **request: Any) -> dict[str, Any]:
    """The agent's answer.

    Raises UnreachableError where SSH fails or times out, RefusedError where the agent refuses.
    """
    body = json.dumps({"do": do, "root": end.root, **request})
    try:
        done = subprocess.run(
            command(end), input=body, capture_output=True, text=True, errors="replace", timeout=timeout_s
        )
    except subprocess.TimeoutExpired as error:
        raise UnreachableError(f"{name}: no answer within {timeout_s:g} s") from error
    if done.returncode == SSH_FAILED:
        raise UnreachableError(f"{name}: ssh: {_last_line(done.stderr)}")
    try:
        answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError) as error:
        words = _last_line(done.stderr) or _last_line(done.stdout) or f"exit code {done.returncode}"
        raise RefusedError(f"{name}: the agent gave no answer: {words}") from error
    if "refused" in answer:
        raise RefusedError(f"{name}: {answer['refused']}")
    return answer


def fetch(name: str, end: End, transfer: str, folder: Path) -> None:
    """Bring the files of a transfer's end into `folder`. Raises as `ask` does; a cut stream counts as unreachable."""
    folder.mkdir()
    body = json.dumps({"do": "fetch", "root": end.root, "id": transfer}).encode()
    problem: Exception | None = None
    with tempfile.TemporaryFile() as words:
        process = subprocess.Popen(command(end), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=words)
        assert process.stdin is not None and process.stdout is not None
        with process.stdout:
            try:
                process.stdin.write(body)
                process.stdin.close()
                _unpack(process.stdout, folder, name)
                while process.stdout.read(1 << 16):
                    pass
                process.wait(REQUEST_TIMEOUT_S)
            except (tarfile.TarError, EOFError, BrokenPipeError, zlib.error, subprocess.TimeoutExpired) as error:
                problem = error
            finally:
                process.kill()
                process.wait()
        words.seek(0)
        said = _last_line(words.read().decode(errors="replace"))
    if problem is not None or process.returncode:
        shutil.rmtree(folder)
        reason = said or str(problem) or f"exit code {process.returncode}"
        raise UnreachableError(f"{name}: the files of {transfer} did not come through: {reason}") from problem


def _unpack(stream: IO[bytes], folder: Path, name: str) -> None:
    total = 0
    with tarfile.open(fileobj=stream, mode="r|gz") as archive:
        for member in archive:
            total += member.size
            if not member.isreg() or not FILE.fullmatch(member.name) or total > LARGEST_FETCH_BYTES:
                raise RefusedError(f"{name}: {member.name!r} does not belong to a transfer's files")
            source = archive.extractfile(member)
            assert source is not None
            with source, open(folder / member.name, "xb") as target:
                shutil.copyfileobj(source, target)


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return lines[-1] if lines else ""
