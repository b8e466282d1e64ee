# SPDX-License-Identifier: Apache-2.0
"""Execute one plan on the virtual host: start the guest in its cage, watch it, tell how it ended."""

from __future__ import annotations

import compileall
import functools
import hashlib
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent import plain_code
from base.paths import ROOT, SENT_PACKAGES
from hosts.base import Execution, Outcome, failure
from hosts.virtual import boot, pinned
from hosts.virtual.console import Console
from hosts.virtual.stall import Stall
from hosts.watch import error_of, facts_of, follow
from network.model import path
from plan.model import Plan

EPOCH_NS = 1_767_225_600 * 10**9
"""Every guest starts on 2026-01-01 00:00:00 UTC: a fixed wall clock is part of being bit-exact."""
BASE_MEMORY_BYTES = 384 << 20
MEMORY_PER_FLOW_BYTES = 4 << 20
MEMORY_PER_NODE_BYTES = 4 << 20
MEMORY_PER_BDP = 6
"""Guest memory per byte in flight: the sender's copy, the clones under way and their overhead."""


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


def command(kernel: GuestKernel, run: Execution) -> list[str]:
    """The cage, the guest kernel and its command line."""
    root = pinned.root() or boot.HOST_ROOT
    line = boot.arguments(
        kernel,
        memory_bytes(run.plan) >> 20,
        boot.SYSTEM_PYTHON,
        "loglevel=4",
        "ipv6.disable_ipv6=1",
        f"{plain_code.CHOICE}={plain_code.VALUE}",
        *boot.shares(kernel, run.folder),
        *boot.python(ROOT / "agent/init.py", root=root),
        start_ns=EPOCH_NS,
        seed=random_seed(run.seed),
        root=root,
    )
    return boot.caged(run.cpu, run.folder, line, boot.places(kernel, root))


@functools.cache
def compile_agent() -> None:
    """Leave the guest's programs compiled beside their sources, where that can be written: guests cannot write there."""
    for package in SENT_PACKAGES:
        compileall.compile_dir(ROOT / package, quiet=2)


def execute(kernel: GuestKernel, run: Execution) -> Outcome:
    """Run the plan in a guest; raw files and guest.json are left in the folder."""
    compile_agent()
    run, folder = run.of(run.plan), run.folder
    started, console = time.monotonic(), Console()
    with open(folder / "console.log", "wb") as log:
        process = subprocess.Popen(
            command(kernel, run),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=boot.environment(),
            cwd="/",
        )
        try:
            stopped = follow(process, console, log, run, Stall(process.pid))
        finally:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
    facts = facts_of(folder)
    if stopped is None and console.disaster:
        stopped = failure("kernel", "guest", "\n".join(console.disaster))
    error = stopped or error_of(console, facts, process.returncode, folder / "console.log", "guest", "boot")
    return Outcome(error, facts, time.monotonic() - started, console.virtual_s)
