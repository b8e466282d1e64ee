# SPDX-License-Identifier: Apache-2.0
"""Follow an agent that works in real time: its messages, its end, and the moment at which it has to be given up."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from hosts.base import failure
from hosts.virtual.console import Console

POLL_S = 0.5
SILENCE_S = float(os.environ.get("WARPBED_SILENCE_S", "120"))
"""An agent says where it is once a second; building, and ending of applications, take longer."""


def follow(
    process: subprocess.Popen[bytes],
    console: Console,
    log: BinaryIO,
    progress: Callable[[float], None],
    cancelled: Callable[[], bool],
    silence_s: float = SILENCE_S,
) -> dict[str, str] | None:
    """Read the agent's standard output until it ends; returns why it has to be stopped before, else None."""
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    rest, last = b"", time.monotonic()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            if cancelled():
                return failure("run", "agent", "interrupted")
            if selector.select(POLL_S):
                data = process.stdout.read()
                if data == b"":
                    return None
                if data:
                    log.write(data)
                    log.flush()
                    *lines, rest = (rest + data).split(b"\n")
                    heard = [console.line(line.decode(errors="replace").rstrip("\r")) for line in lines]
                    if any(heard):
                        last = time.monotonic()
                        progress(console.virtual_s)
            if time.monotonic() - last > silence_s:
                words = f"nothing heard for {silence_s:.0f} s, at {console.virtual_s:g} s of the run"
                return failure("watchdog", "agent", words)


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


def error_of(console: Console, facts: dict[str, Any], code: int, log: Path) -> dict[str, str] | None:
    """Why an agent that ended by itself has no result, None where it has one."""
    if facts.get("error"):
        error: dict[str, str] = facts["error"]
        return error
    if console.errors:
        return failure("agent", "agent", "\n".join(console.errors[-8:]))
    if facts.get("ok") and console.done:
        return None
    tail = log.read_text(errors="replace").strip().splitlines()[-5:]
    return failure("agent", "start", f"it ended (code {code}) without a result: {' / '.join(tail) or 'no output'}")
