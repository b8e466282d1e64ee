# SPDX-License-Identifier: Apache-2.0
"""Run scenarios with the real modules in a UML guest and read what every hook saw.

The same scenario gives the same hooks, bit for bit, on any machine: see guest.py.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from hosts.virtual import boot
from hosts.virtual.boot import Kernel
from tests.harness import kept, trace

GUEST = pathlib.Path(__file__).with_name("guest.py")
MEMORY = "/dev/shm"
PREFIX = "warpbed-spec-"
STATES = ("open", "disorder", "cwr", "recovery", "loss")
GUEST_SEED = 1
"""Of the guest's random numbers but the losses; they decide addresses and sequence numbers."""


YOUNG_S = 10
SPLATS = re.compile(r"Call Trace|WARNING: |BUG: |UBSAN: |kmemleak: Cannot")


class GuestError(Exception):
    """The guest did not finish its scenarios; the message holds its own words."""


@dataclasses.dataclass(slots=True)
class Hook:
    """One trace event cc_hook; kernels/modules/cc_hooks.h explains the letters."""

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
    packets_out: int
    retrans: int
    duplicates: int
    mss: int
    state: int
    now_ns: int
    limited: bool
    unsent: bool
    filled: bool
    nothing_to_send: bool


@dataclasses.dataclass(frozen=True)
class Flow:
    cca: str
    port: int = 40000
    start_s: float = 0.0
    phases: tuple[tuple[float, float | None], ...] = ((10.0, None),)
    dst: str = "203.0.113.2"  # the receiver is also 203.0.113.3, and 2001:db8:3::2 and ::3 in a scenario with IPv6
    host: str = "snd"  # or alt, another network namespace
    chosen_s: float = 0.0  # when the connection takes cca;
    begins_with: str = "reno"  # until then it has this one
    max_pacing: int = 0  # SO_MAX_PACING_RATE, bytes per second; 0 for none
    addrform_s: float = 0.0  # after so long the socket becomes one of IPv4 (IPV6_ADDRFORM); 0 for never


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
    reorder_percent: float = 0.0  # so many skip the wire's delay and overtake the others
    queue: str = ""  # another one than buffer_packets of drop-tail, in tc's words
    ecn: bool = False
    renege_s: tuple[float, ...] = ()  # when the receiver throws away what it has SACKed
    ack_loss_percent: float = 0.0
    seed: int = 1  # of the losses
    quickack: bool = True
    sack: bool = True
    ipv6: bool = False
    blackouts: tuple[tuple[float, float], ...] = ()
    changes: tuple[tuple[float, str], ...] = ()  # commands in the guest, see guest.change()
    bring: tuple[str, ...] = ()  # modules that are not loaded but lie in the guest's /mnt
    sender_mbit: float = 0.0  # rate of the sender's own interface, 0 for none
    sender_qdisc: str = ""  # or a qdisc of another kind, in tc's words
    trace_kb: int = 200_000
    trace: bool = True
    capture: bool = False  # what passes the interface of `snd`


@dataclasses.dataclass(frozen=True)
class Result:
    hooks: tuple[Hook, ...]
    start_us: float
    queue: list[dict[str, Any]]
    sender_queue: list[dict[str, Any]]
    sockets: str
    counters: dict[str, dict[str, int]]
    """What the kernel's TCP counters (/proc/net/snmp, netstat) of `snd` and `rcv` rose by."""
    capture: bytes = b""
    """A pcap file of Ethernet frames, where the scenario wants one."""

    def flow(self, port: int = 40000) -> Iterator[Hook]:
        return (h for h in self.hooks if h.port == port)

    @property
    def drops(self) -> int:
        return int(self.queue[-1]["drops"])


_cpu = itertools.cycle(sorted(os.sched_getaffinity(0)))


def run(kernel: Kernel, scenario: Scenario, timeout_s: float = 300.0) -> Result:
    """One scenario in a guest of its own."""
    return next(run_all(kernel, [scenario], timeout_s))


def run_all(kernel: Kernel, scenarios: Sequence[Scenario], timeout_s: float = 600.0) -> Iterator[Result]:
    """Scenarios one after the other in one guest; their results are read one by one.

    Raises GuestError where the guest, or what it was told to do, failed.
    """
    with _folder(kernel, (m for s in scenarios for m in (*s.modules, *s.bring))) as out:
        (out / "scenarios.json").write_text(json.dumps([_for_guest(s) for s in scenarios]))
        _boot(kernel, out, timeout_s)
        for i in range(len(scenarios)):
            yield _read(out, i)


def run_cycles(
    kernel: Kernel, modules: Sequence[str], ccas: Sequence[str], count: int, *, loss_percent: float = 0.0
) -> list[dict[str, int]]:
    """Load all modules, send with all algorithms, unload all, count times; kB of kernel memory after each time.

    With a kernel that has kmemleak, raises GuestError with what it found.
    """
    path = Scenario((), tuple(modules), loss_percent=loss_percent)
    scenario = {**_for_guest(path), "cycles": count, "ccas": list(ccas)}
    with _folder(kernel, modules) as out:
        (out / "scenarios.json").write_text(json.dumps([scenario]))
        _boot(kernel, out, 120.0 + 5 * count, warnings=True)
        figures: list[dict[str, int]] = json.loads((out / "0.json").read_text())
    return figures


@contextlib.contextmanager
def _folder(kernel: Kernel, modules: Iterable[str]) -> Iterator[pathlib.Path]:
    """The guest's /mnt, with modules; the guest covers the host's /tmp, so they have to come along."""
    parent = pathlib.Path(MEMORY if os.path.isdir(MEMORY) else tempfile.gettempdir())
    reap(parent)
    with tempfile.TemporaryDirectory(prefix=PREFIX, dir=parent) as name, _held(pathlib.Path(name)):
        for module in set(modules):
            shutil.copy(kernel.modules / f"{file_name(module)}.ko", name)
        yield pathlib.Path(name)


@contextlib.contextmanager
def _held(folder: pathlib.Path) -> Iterator[int]:
    """Hold the lock that says that a folder is in use; a process that is killed lets go of it."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield handle
    finally:
        os.close(handle)


def reap(parent: pathlib.Path) -> None:
    """Remove the folders of this user whose makers were killed; one that has just been made has YOUNG_S to take its lock."""
    for folder in parent.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            about = folder.lstat()
            if about.st_uid != os.geteuid() or time.time() - about.st_mtime < YOUNG_S:
                continue
            with _held(folder):
                shutil.rmtree(folder)


def file_name(module: str) -> str:
    """`hoe` is tcp_hoe; what is no congestion control is named in full, like sch_invert."""
    return module if "_" in module and module.split("_")[0] in ("sch", "warp") else f"tcp_{module}"


def _for_guest(scenario: Scenario) -> dict[str, Any]:
    text: dict[str, Any] = {**dataclasses.asdict(scenario), "cycles": 0}
    names = [file_name(m) for m in scenario.modules]
    text["modules"] = [
        {"name": name, "path": f"/mnt/{name}.ko", "params": scenario.params.get(module, {})}
        for name, module in zip(names, scenario.modules, strict=True)
    ]
    text["events"] = [name for name in names if name.startswith("tcp_")] if scenario.trace else []
    return text


def _boot(kernel: Kernel, out: pathlib.Path, timeout_s: float, *, warnings: bool = False) -> None:
    """Run the guest to its end; it dies with this process. warnings: let the kernel's show, which are then errors."""
    line = boot.arguments(
        kernel, 1024, GUEST, "loglevel=5" if warnings else "quiet", f"wb_out={out}", start_ns=10**18, seed=GUEST_SEED,
        folder=out, name="guest",
    )  # fmt: skip
    name = kept.key(line, out)
    if not warnings and kept.restore(name, out):
        return
    given = {file.name for file in out.iterdir()}
    command = ["setpriv", "--pdeathsig", "KILL", "taskset", "-c", str(next(_cpu)), "setarch", "-R", *line]
    environment = {"PATH": os.environ["PATH"], "HOME": "/root", "TMPDIR": str(out)}
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_s, env=environment, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise GuestError(f"the guest was still running after {timeout_s} s") from error
    console = (done.stdout + done.stderr).decode(errors="replace")
    if (out / "error.txt").exists():
        raise GuestError((out / "error.txt").read_text() + console[-2000:])
    if splat := SPLATS.search(console):
        begin = console.rfind("\n", 0, splat.start()) + 1
        raise GuestError(f"exit {done.returncode}; the kernel says:\n{console[begin : begin + 3000]}")
    if done.returncode:
        raise GuestError(f"exit {done.returncode}; console ends:\n{console[-3000:]}")
    if not warnings:
        kept.keep(name, out, given)


def _read(out: pathlib.Path, number: int) -> Result:
    if not (out / f"{number}.json").exists():
        raise GuestError(f"scenario {number} left no result")
    result = json.loads((out / f"{number}.json").read_text())
    if result["trace_lost"]:
        raise GuestError(f"the trace buffer overflowed ({result['trace_lost']} events); raise trace_kb")
    hooks: tuple[Hook, ...] = ()
    if (out / f"{number}.trace").exists():
        events = trace.events((out / f"{number}.trace").read_bytes(), (out / f"{number}.format").read_text(), FIELDS)
        hooks = tuple(map(_hook, events))
    capture = out / f"{number}.pcap"
    return Result(
        hooks, result["start_us"], result["queue"], result["sender_queue"], result["sockets"], result["counters"],
        capture.read_bytes() if capture.exists() else b"",
    )  # fmt: skip


FIELDS = (*(field.name for field in dataclasses.fields(Hook)[:-4]), "limited")


def _hook(fields: tuple[int, ...]) -> Hook:
    """From FIELDS; the event's `limited` holds four flags."""
    port, hook, now_us, una, nxt, cwnd, ssthresh, count, rtt_us, in_flight, delivered = fields[:11]
    packets_out, retrans, duplicates, mss, state, now_ns, flags = fields[11:]
    return Hook(
        port, chr(hook), now_us, una, nxt, cwnd, ssthresh, count, rtt_us, in_flight, delivered,
        packets_out, retrans, duplicates, mss, state, now_ns,
        limited=bool(flags & 1), unsent=bool(flags & 2), filled=bool(flags & 4), nothing_to_send=bool(flags & 8),
    )  # fmt: skip
