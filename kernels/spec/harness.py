# SPDX-License-Identifier: Apache-2.0
"""Run a scenario with the real modules in a UML guest and read what every hook saw.

The kernel is the folder named by ``WARPBED_TEST_KERNEL``: ``linux`` (UML with time travel) and ``modules/*.ko``.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from typing import Any

GUEST = pathlib.Path(__file__).with_name("guest.py")
MEMORY = "/dev/shm"
STATES = ("open", "disorder", "cwr", "recovery", "loss")


class GuestError(Exception):
    """The guest did not finish its scenario; the message holds its own words."""


@dataclasses.dataclass(frozen=True)
class Hook:
    """One line of the trace event cc_hook; kernels/modules/cc_hooks.h explains the letters."""

    port: int
    hook: str
    now_us: int
    una: int
    nxt: int
    cwnd: int
    ssthresh: int
    count: int
    rtt_us: int
    in_flight: int
    delivered: int
    state: int
    limited: bool
    unsent: bool


@dataclasses.dataclass(frozen=True)
class Flow:
    cca: str
    port: int = 40000
    start_s: float = 0.0
    phases: tuple[tuple[float, float | None], ...] = ((10.0, None),)
    dst: str = "203.0.113.2"  # the receiver is also 203.0.113.3


@dataclasses.dataclass(frozen=True)
class Scenario:
    flows: tuple[Flow, ...]
    modules: tuple[str, ...] = ()
    params: dict[str, dict[str, int]] = dataclasses.field(default_factory=dict)
    seconds: float = 10.0
    rate_mbit: float = 50.0
    delay_ms: float = 50.0
    buffer_packets: int = 250
    packet_bytes: int = 1000
    loss_percent: float = 0.0
    quickack: bool = True
    sack: bool = True
    blackouts: tuple[tuple[float, float], ...] = ()
    changes: tuple[tuple[float, str], ...] = ()
    sender_mbit: float = 0.0  # rate of the sender's own interface, 0 for none
    trace_kb: int = 200_000
    trace: bool = True


@dataclasses.dataclass(frozen=True)
class Result:
    hooks: tuple[Hook, ...]
    start_us: float
    queue: list[dict[str, Any]]
    sockets: str

    def flow(self, port: int = 40000) -> Iterator[Hook]:
        return (h for h in self.hooks if h.port == port)

    @property
    def drops(self) -> int:
        return int(self.queue[-1]["drops"])


def kernel() -> pathlib.Path | None:
    """The folder to test, or None where there is none (the tests then skip)."""
    name = os.environ.get("WARPBED_TEST_KERNEL")
    if not name:
        return None
    folder = pathlib.Path(name)
    missing = [p for p in ("linux", "modules") if not (folder / p).exists()]
    if missing:
        raise GuestError(f"WARPBED_TEST_KERNEL={name}: no {' and no '.join(missing)} in it")
    return folder


_cpu = itertools.cycle(sorted(os.sched_getaffinity(0)))


def run(scenario: Scenario, timeout_s: float = 300.0) -> Result:
    folder = kernel()
    if folder is None:
        raise GuestError("WARPBED_TEST_KERNEL is not set")
    with tempfile.TemporaryDirectory(prefix="warpbed-spec-") as name:
        out = pathlib.Path(name)
        text = dataclasses.asdict(scenario)
        for module in scenario.modules:  # the guest covers the host's /tmp, so the modules come along
            shutil.copy(folder / "modules" / f"tcp_{module}.ko", out)
        text["modules"] = [{"path": f"/mnt/tcp_{m}.ko", "params": scenario.params.get(m, {})} for m in scenario.modules]
        text["events"] = [f"tcp_{m}" for m in scenario.modules] if scenario.trace else []
        (out / "scenario.json").write_text(json.dumps(text))
        command = [
            "taskset",
            "-c",
            str(next(_cpu)),
            str(folder / "linux"),
            "mem=1G",
            "root=/dev/root",
            "rootfstype=hostfs",
            "rootflags=/",
            "ro",
            f"init={GUEST}",
            "time-travel=inf-cpu",
            "time-travel-start=1000000000",
            "con=null",
            "con0=fd:0,fd:1",
            "seccomp=on",
            "quiet",
            f"wb_out={out}",
        ]
        environment = {**os.environ, "TMPDIR": MEMORY if os.path.isdir(MEMORY) else tempfile.gettempdir()}
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_s, env=environment, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise GuestError(f"the guest was still running after {timeout_s} s") from error
        console = done.stdout.decode(errors="replace")
        if (out / "error.txt").exists():
            raise GuestError((out / "error.txt").read_text() + console[-2000:])
        if not (out / "result.json").exists() or "Call Trace" in console or "WARNING:" in console:
            raise GuestError(f"exit {done.returncode}; console ends:\n{console[-3000:]}")
        result = json.loads((out / "result.json").read_text())
        hooks = tuple(parse((out / "trace.txt").read_text()))
        for line in result["trace_stats"].splitlines():
            if line.startswith("overrun:") and line.split()[1] != "0":
                raise GuestError(f"the trace buffer overflowed ({line}); raise trace_kb")
    return Result(hooks, result["start_us"], result["queue"], result["sockets"])


def parse(text: str) -> Iterator[Hook]:
    for line in text.splitlines():
        words = line.replace("cc_hook: ", "").split()
        numbers = [int(w) for w in words[2:]]
        now_us, una, nxt, cwnd, ssthresh, count, rtt_us, in_flight, delivered, state, flags = numbers
        yield Hook(
            int(words[0]),
            words[1],
            now_us,
            una,
            nxt,
            cwnd,
            ssthresh,
            count,
            rtt_us,
            in_flight,
            delivered,
            state,
            limited=bool(flags & 1),
            unsent=bool(flags & 2),
        )
