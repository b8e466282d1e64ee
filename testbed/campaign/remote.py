# SPDX-License-Identifier: Apache-2.0
"""Ask the agent on a host (agent.endpoint) over SSH, one request per connection."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from base.errors import WarpbedError
from hosts.archive import LARGEST_FETCH_BYTES, Limits, Readable, TooLargeError, unpack
from hosts.remote import FETCH_TIMEOUT_S, Remote, UnreachableError, last_line
from testbed.campaign.ends import End

__all__ = ["RefusedError", "UnreachableError", "ask", "fetch"]
CONNECT_S, SILENCE_S = 10, 20
REQUEST_TIMEOUT_S = 60.0
TRACE_TIMEOUT_S = 150.0
FILES = Limits(
    names=re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,80}\.(pcap|bin|json|log)"),
    files=32,
    largest={".bin": 256 << 20, ".json": 1 << 20, ".log": 16 << 20},
)
"""Of a transfer at one end: a capture, the samples of its socket, what the programs say."""


class RefusedError(WarpbedError):
    """The host answered that it cannot do what was asked; asking again would not help."""


def _remote(end: End) -> Remote:
    """The way to an end; nothing of it comes from a result."""
    key = Path(end.key) if end.key else None
    return Remote(
        end.host, end.ssh_port, end.user, key,
        become=end.become, connect_s=CONNECT_S, silence_s=SILENCE_S, extra=tuple(end.ssh_options),
    )  # fmt: skip


def _agent(end: End) -> list[str]:
    return ["/usr/bin/python3", "-I", end.agent]


def ask(name: str, end: End, do: str, timeout_s: float = REQUEST_TIMEOUT_S, **request: Any) -> dict[str, Any]:
    """The agent's answer.

    Raises UnreachableError where SSH fails or times out, RefusedError where the agent refuses.
    """
    body = json.dumps({"do": do, "root": end.root, **request}).encode()
    try:
        completed = _remote(end).call(*_agent(end), data=body, timeout_s=timeout_s)
    except UnreachableError as error:
        raise UnreachableError(f"{name}: ssh: {last_line(str(error).encode())}") from error
    try:
        answer: Any = json.loads(completed.stdout.decode(errors="replace").strip().splitlines()[-1])
    except (ValueError, IndexError, RecursionError) as error:
        output = last_line(completed.stderr) or last_line(completed.stdout) or f"exit code {completed.returncode}"
        raise RefusedError(f"{name}: the agent gave no answer: {output}") from error
    if not isinstance(answer, dict):
        raise RefusedError(f"{name}: {last_line(completed.stdout)[:80]!r} is no answer of the agent's")
    if "refused" in answer:
        raise RefusedError(f"{name}: {answer['refused']}")
    return answer


def fetch(
    name: str,
    end: End,
    transfer: str,
    folder: Path,
    limit_s: float = FETCH_TIMEOUT_S,
    heed: Callable[[], None] = lambda: None,
    capture_bytes: int = LARGEST_FETCH_BYTES,
) -> None:
    """Bring the files of a transfer's end into `folder`, within limit_s or longer by what has come (hosts.deadline).

    capture_bytes: of the capture, which is the largest of them
    heed: called every second; what it raises ends this
    Raises as `ask` does; a cut stream, or one that does not end, counts as unreachable, one that is too large as refused.
    """
    folder.mkdir()
    body = json.dumps({"do": "fetch", "root": end.root, "id": transfer}).encode()

    def refuse(file: str) -> None:
        raise RefusedError(f"{name}: {file!r} does not belong to a transfer's files")

    def take(stream: Readable) -> None:
        limits = replace(FILES, largest={**FILES.largest, ".pcap": capture_bytes})
        unpack(stream, folder, refuse, limits, is_compressed=True)

    try:
        _remote(end).receive(
            *_agent(end), take=take, data=body, limit_s=limit_s, timeout_s=REQUEST_TIMEOUT_S, heed=heed
        )
    except TooLargeError as error:
        shutil.rmtree(folder)
        raise RefusedError(f"{name}: the files of {transfer}: {error}") from error
    except UnreachableError as error:
        shutil.rmtree(folder)
        raise UnreachableError(f"{name}: the files of {transfer} did not come through: {error}") from error
    except BaseException:
        shutil.rmtree(folder)
        raise
