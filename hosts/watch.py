# SPDX-License-Identifier: Apache-2.0
"""Follow an agent or a guest: its messages, its end, and the moment at which it has to be given up."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import time
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from hosts.base import Execution, failure
from hosts.lines import Lines
from hosts.virtual.console import Console

POLL_S = 0.5
CHUNK_BYTES = 1 << 16
END_S = 20.0
"""How long a process that was told to end may take, and how long the kernel may take to end it."""
SILENCE_S = float(os.environ.get("WARPBED_SILENCE_S", "120"))
"""An agent says where it is once a second; building, and ending of applications, take longer."""


class Patience(Protocol):
    """When whoever works is given up. `who` is what failures name."""

    @property
    def who(self) -> str: ...

    def moved(self) -> None:
        """A message has come."""

    def exhausted(self, virtual_s: float) -> str | None:
        """Why it is given up now, after so many seconds of the run; None while it is not."""


class Silence:
    """Patience in real time: an agent that says nothing for `limit_s` is given up."""

    who = "agent"

    def __init__(self, limit_s: float = SILENCE_S) -> None:
        self._limit_s, self._last = limit_s, time.monotonic()

    def moved(self) -> None:
        self._last = time.monotonic()

    def exhausted(self, virtual_s: float) -> str | None:
        if time.monotonic() - self._last <= self._limit_s:
            return None
        return f"nothing heard for {self._limit_s:.0f} s, at {virtual_s:g} s of the run"


def follow(
    process: subprocess.Popen[bytes],
    console: Console,
    log: BinaryIO,
    run: Execution,
    patience: Patience | None = None,
) -> dict[str, str] | None:
    """Read what the process prints until it ends; returns why it has to be stopped before, else None."""
    assert process.stdout is not None
    patience = patience or Silence()
    said = Lines(log)
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            if run.cancelled():
                return failure("run", patience.who, "interrupted")
            if selector.select(POLL_S):
                data = os.read(process.stdout.fileno(), CHUNK_BYTES)
                if not data:
                    return None
                heard = [console.line(line) for line in said.take(data)]
                if any(heard):
                    patience.moved()
                    run.progress(console.virtual_s)
            if (reason := patience.exhausted(console.virtual_s)) is not None:
                return failure("watchdog", patience.who, reason)


def ended(process: subprocess.Popen[bytes]) -> int:
    """The exit code of a process that was told to end; one that does not is killed."""
    try:
        return process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
    try:
        return process.wait(END_S)
    except subprocess.TimeoutExpired:  # it hangs in the kernel, which nobody can end
        return -signal.SIGKILL


def facts_of(folder: Path) -> dict[str, Any]:
    """guest.json as the agent left it; empty where there is none."""
    try:
        facts: dict[str, Any] = json.loads((folder / "guest.json").read_text())
    except (OSError, ValueError):
        return {}
    return facts


def keep_facts(folder: Path, facts: dict[str, Any], **host: Any) -> None:
    """Write guest.json again, with what executed the run as `host`."""
    facts["host"] = host
    (folder / "guest.json").write_text(json.dumps(facts, indent=1, sort_keys=True))


def error_of(
    console: Console, facts: dict[str, Any], code: int, log: Path, who: str = "agent", first: str = "start"
) -> dict[str, str] | None:
    """Why an agent or guest that ended by itself has no result, None where it has one. first: what it does before all else"""
    if facts.get("error"):
        error: dict[str, str] = facts["error"]
        return error
    if console.errors:
        return failure("agent", who, "\n".join(console.errors[-8:]))
    if facts.get("ok") and console.done:
        return None
    tail = log.read_text(errors="replace").strip().splitlines()[-5:]
    return failure(who, first, f"the {who} ended (code {code}) without a result: {' / '.join(tail) or 'no output'}")
