# SPDX-License-Identifier: Apache-2.0
"""Execute one plan on the virtual host: start the guest in its cage, watch it, tell how it ended."""

from __future__ import annotations

import hashlib
import json
import os
import selectors
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from base.paths import ROOT
from hosts.base import Outcome
from hosts.virtual.console import Console
from network.model import path
from plan.model import Plan

EPOCH_NS = 1_767_225_600 * 10**9
"""Every guest starts on 2026-01-01 00:00:00 UTC: a fixed wall clock is part of being bit-exact."""
SYSTEM_PYTHON = "/usr/bin/python3"
BASE_MEMORY_BYTES = 384 << 20
MEMORY_PER_FLOW_BYTES = 4 << 20
MEMORY_PER_NODE_BYTES = 4 << 20
MEMORY_PER_BDP = 6
"""Guest memory per byte in flight: the sender's copy, the clones under way and their overhead."""
STALL_CPU_S = float(os.environ.get("WARPBED_STALL_S", "90"))
"""CPU time that a guest may use without its clock moving on by a second: beyond it, it busy-loops."""
STALL_WALL_S = 900.0
POLL_S = 0.5


@dataclass(frozen=True)
class GuestKernel:
    """A kernel build: the executable, its modules' folder, the build's key, and whether it knows seccomp=on."""

    linux: Path
    modules: Path
    key: str
    release: str
    facts: dict[str, Any]

    @property
    def has_seccomp(self) -> bool:
        major, minor = (int(part) for part in self.release.split(".")[:2])
        return (major, minor) >= (6, 16)


def memory_bytes(plan: Plan) -> int:
    """Guest memory that holds every packet in flight and every queue."""
    total = BASE_MEMORY_BYTES + MEMORY_PER_NODE_BYTES * len(plan.network.nodes)
    for flow in plan.flows:
        hops = path(plan.network, flow.source, flow.destination)
        rate = min((d.rate_bps for _, _, d in hops if d.rate_bps), default=10**10)
        rtt_ns = 2 * sum(d.delay_ns for _, _, d in hops)
        queued = sum(d.buffer.full_bytes for _, _, d in hops if d.buffer)
        total += MEMORY_PER_FLOW_BYTES + int(MEMORY_PER_BDP * (rate * rtt_ns / 8e9 + queued))
    return total


def random_seed(seed: int) -> int:
    """64 bits for the guest's random numbers, from the run's seed."""
    return int.from_bytes(hashlib.sha256(f"warpbed {seed}".encode()).digest()[:8], "big")


def command(kernel: GuestKernel, plan: Plan, folder: Path, cpu: int, seed: int) -> list[str]:
    """The cage, the guest kernel and its command line."""
    line = [
        str(kernel.linux),
        f"mem={memory_bytes(plan) >> 20}M",
        "root=/dev/root",
        "rootfstype=hostfs",
        "rootflags=/",
        "ro",
        f"init={SYSTEM_PYTHON}",
        "time-travel=inf-cpu",
        f"time-travel-start={EPOCH_NS}",
        f"um_seed={random_seed(seed)}",
        "con=null",
        "con0=null,fd:1",
        "con1=null",
        "loglevel=4",
        "ipv6.disable_ipv6=1",
        "uml_dir=/dev/shm",
        "umid=warpbed",
    ]
    if kernel.has_seccomp:
        line.append("seccomp=on")
    line += [f"WB_SOURCE={_quoted(ROOT)}", f"WB_OUT={_quoted(folder)}", f"WB_MODULES={_quoted(kernel.modules)}"]
    line += ["--", "-B", "-I", _quoted(ROOT / "agent/init.py")]
    return [SYSTEM_PYTHON, "-I", str(ROOT / "hosts/virtual/cage.py"), str(cpu), str(folder), *line]


def _quoted(path: Path) -> str:
    """As the kernel's command line takes it: blanks need quotes, and there is no way to write a quote inside them."""
    return f'"{path}"' if " " in str(path) else str(path)


def execute(
    kernel: GuestKernel,
    plan: Plan,
    folder: Path,
    cpu: int,
    seed: int,
    progress: Callable[[float], None],
    cancelled: Callable[[], bool],
) -> Outcome:
    """Run the plan in a guest; raw files and guest.json are left in `folder`.

    progress: called with the virtual seconds that have passed
    cancelled: asked now and then; once it says True the guest is killed
    """
    (folder / "plan.json").write_text(plan.to_json())
    started, console = time.monotonic(), Console()
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "TMPDIR": "/dev/shm", "LANG": "C.UTF-8"}
    with open(folder / "console.log", "wb") as log:
        process = subprocess.Popen(
            command(kernel, plan, folder, cpu, seed),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd="/",
        )
        try:
            stopped = _watch(process, console, log, progress, cancelled)
        finally:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
    facts = _facts(folder)
    error = stopped or _error(console, facts, process.returncode, folder)
    return Outcome(error, facts, time.monotonic() - started, console.virtual_s)


def _watch(
    process: subprocess.Popen[bytes],
    console: Console,
    log: Any,
    progress: Callable[[float], None],
    cancelled: Callable[[], bool],
) -> dict[str, str] | None:
    """Read the console until the guest ends or has to be stopped; returns why it was stopped."""
    assert process.stdout is not None
    os.set_blocking(process.stdout.fileno(), False)
    rest, last_wall, last_cpu = b"", time.monotonic(), 0.0
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            if cancelled():
                return _failure("run", "guest", "interrupted")
            if selector.select(POLL_S):
                data = process.stdout.read()
                if data == b"":
                    return None
                if data:
                    log.write(data)
                    *lines, rest = (rest + data).split(b"\n")
                    moved = [console.line(line.decode(errors="replace").rstrip("\r")) for line in lines]
                    if any(moved):
                        last_wall, last_cpu = time.monotonic(), _cpu_s(process.pid)
                        progress(console.virtual_s)
            cpu_s, wall_s = _cpu_s(process.pid) - last_cpu, time.monotonic() - last_wall
            if cpu_s > STALL_CPU_S or wall_s > STALL_WALL_S:
                words = (
                    f"no progress for {wall_s:.0f} s ({cpu_s:.0f} s of CPU) at {console.virtual_s:g} virtual seconds"
                )
                return _failure(
                    "watchdog", "guest", f"{words}: something in the guest busy-loops, which virtual time cannot pass"
                )


def _cpu_s(pid: int) -> float:
    """CPU seconds of a process and all that descend from it, living or reaped."""
    total, todo = 0, [pid]
    while todo:
        here = todo.pop()
        try:
            fields = Path(f"/proc/{here}/stat").read_text().rsplit(")", 1)[1].split()
            total += sum(int(value) for value in fields[11:15])
            todo += [int(p) for p in Path(f"/proc/{here}/task/{here}/children").read_text().split()]
        except OSError:
            continue
    return total / os.sysconf("SC_CLK_TCK")


def _facts(folder: Path) -> dict[str, Any]:
    try:
        facts: dict[str, Any] = json.loads((folder / "guest.json").read_text())
    except (OSError, ValueError):
        return {}
    return facts


def _failure(stage: str, subject: str, detail: str) -> dict[str, str]:
    return {"stage": stage, "subject": subject, "detail": detail}


def _error(console: Console, facts: dict[str, Any], code: int, folder: Path) -> dict[str, str] | None:
    if console.disaster:
        return _failure("kernel", "guest", "\n".join(console.disaster))
    if facts.get("error"):
        error: dict[str, str] = facts["error"]
        return error
    if console.errors:
        return _failure("agent", "guest", "\n".join(console.errors[-8:]))
    if facts.get("ok") and console.done:
        return None
    tail = (folder / "console.log").read_text(errors="replace").strip().splitlines()[-5:]
    return _failure(
        "guest", "boot", f"the guest ended (code {code}) without a result: {' / '.join(tail) or 'no output'}"
    )
