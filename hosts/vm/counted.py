# SPDX-License-Identifier: Apache-2.0
"""A machine whose clock counts instructions: each takes a nanosecond, and while nobody works time leaps to the next timer.

The emulated CPU (TCG) then has a speed of its own, 10^9 instructions per second, however busy the computer is. Nothing comes from outside
from the boot to the run's end: kernel, root, orders, date and random numbers are given beforehand, and results are
written at the very end. The same run therefore gives the same bytes.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import tarfile
import time
from pathlib import Path
from typing import Any

from agent import plain_code
from base.cache import aside, digest, sha256_of, used
from base.errors import UsageError, WarpbedError
from base.linux import die_with_parent
from base.paths import ROOT, cache_dir
from hosts import bpf
from hosts.archive import unpack
from hosts.base import Execution, Outcome, failure
from hosts.realtime import in_real_time, modules_of
from hosts.remote import agent_files
from hosts.virtual import pinned
from hosts.virtual.boot import SYSTEM_PYTHON
from hosts.virtual.console import Console
from hosts.virtual.launch import memory_bytes, random_seed
from hosts.virtual.stall import Stall
from hosts.vm import initramfs, qemu
from hosts.vm.builds import Builds
from hosts.watch import error_of, facts_of, follow, keep_facts
from kernels.stock_machine import SYSTEM
from plan.console import OUT, PREFIX
from plan.model import Plan

SETTING = "WARPBED_VM_CLOCK"
CHOICES = ("counted", "real")
SHIFT = 0
"""An instruction takes 2^SHIFT ns. The smallest that QEMU knows: a slower CPU would be more of what is measured."""
ICOUNT = f"shift={SHIFT},align=off,sleep=off,rr=record,rrfile=/dev/null"
"""How QEMU counts. Its main thread leaps over the time in which the CPU waits, and takes the CPU for waiting as soon as that executes its
halt, though what it executed since the clock was last read is not counted yet: the leap is then too far by so many nanoseconds, by which
thread got this computer's CPU when. A QEMU that records holds a lock while the CPU executes, which its main thread waits for. What it
records nobody needs, and the clock without it would be the same where that race is not lost."""
DISK_SETTING = "write-cache=off"
"""The kernel then asks for no flush. One that has nothing to do is answered at once, which a QEMU that records, and does not sleep, puts
off for ever (icount_account_warp_timer of 7.2 returns before the queue of such answers is looked at)."""
RECIPE = 1
INIT, PROGRAM = "/warpbed/init", "/warpbed/first.py"
STARTS_PROGRAM = f"#!/bin/sh\nexec {SYSTEM_PYTHON} -B -I {PROGRAM}\n".encode()
"""Python's options cannot stand on the kernel's command line, whose end QEMU adds the machine's devices to."""
UNUSED = (
    "boot",
    "usr/share/perl",
    "usr/share/perl5",
    "usr/lib/x86_64-linux-gnu/perl",
    "usr/lib/x86_64-linux-gnu/perl-base",
)
"""Of the guests' user land: nothing of a run is written in Perl."""
ARCHIVE = "root.cpio"
DONE = f"{PREFIX}done".encode()
APPEND = (
    "console=ttyS0 loglevel=4 panic=-1 reboot=t ipv6.disable_ipv6=1 tsc=reliable no_timer_check "
    f"{qemu.EMULATED} tsc_early_khz=1000000 random.trust_cpu=on rootfstype=ramfs rdinit={INIT} "
    f"{plain_code.CHOICE}={plain_code.VALUE}"
)
"""The CPU's counter shows the clock's nanoseconds, and its random instruction what -seed says."""
START = "2026-01-01T00:00:00"
"""Of every machine's clock, as of every guest's of the virtual host."""
SYSTEM_MIB = 128
"""What the machine's own system takes, besides its root, files and packets."""
PATIENCE = 10
"""An emulated CPU takes ten times as long and more for what the computer's own does."""
PIPE_BYTES = 1 << 20
"""A reader that is late must not make QEMU wait: then the machine's clock would, too."""


def clock(accelerator: qemu.Accelerator) -> str:
    """ "counted" or "real"; raises UsageError for a setting that cannot be had.

    A machine that runs under KVM is as fast as this computer, and its clock the computer's. An emulated one follows no real clock
    well enough, so that it counts.
    """
    chosen = os.environ.get(SETTING) or ("real" if accelerator.name == "kvm" else "counted")
    if chosen not in CHOICES:
        raise UsageError(f"{SETTING} is {chosen!r}; it can be {' or '.join(CHOICES)}")
    return chosen


def root_key() -> str:
    """Identifies the root: the guests' pinned user land, and how the archive is made."""
    return digest([RECIPE, pinned.key(), UNUSED, STARTS_PROGRAM.decode(), sha256_of(Path(initramfs.__file__))])[:20]


def root() -> Path:
    """The archive of the guests' user land, made on first use."""
    tree = pinned.root()
    if tree is None:
        raise UsageError(
            f"a machine that counts has the pinned user land, and {pinned.SETTING} is host; unset it, or set {SETTING}=real"
        )
    final = cache_dir() / "vm" / f"root-{root_key()}"
    with aside(final, marker=ARCHIVE) as made:
        if made:
            with (made[0] / ARCHIVE).open("wb") as stream:
                archive = initramfs.Archive(stream)
                archive.tree(tree, UNUSED)
                archive.device("dev/console", 5, 1)
                archive.file(INIT.lstrip("/"), STARTS_PROGRAM, 0o755)
                archive.end()
    return used(final) / ARCHIVE


def identity() -> str:
    """What of such a machine decides a run's packets beside the kernel."""
    return f"{root_key()}-{digest([qemu.version(), APPEND, ICOUNT])[:12]}"


def command(
    kernel: Path, archive: Path, disk: Path, memory_mib: int, seed: int, is_distributions: bool = False
) -> list[str]:
    """QEMU's command line for a machine whose console is its standard output and whose disk gets the results.

    is_distributions: whether the kernel is one that looks for its devices by ACPI and PCI
    """
    machine = "pc,hpet=off" if is_distributions else "microvm,acpi=off,rtc=on,isa-serial=on,auto-kernel-cmdline=on"
    return [
        qemu.QEMU,
        "-M", machine,
        "-accel", "tcg,thread=single", "-cpu", "max",
        "-icount", ICOUNT,
        "-smp", "1", "-m", f"{memory_mib}M",
        "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-serial", "stdio",
        "-rtc", f"base={START},clock=vm", "-seed", str(seed),
        "-kernel", str(kernel), "-initrd", str(archive), "-append", APPEND,
        "-drive", f"id=out,file={qemu.escaped(disk)},format=raw,if=none,cache=unsafe",
        "-device", f"virtio-blk-{'pci' if is_distributions else 'device'},drive=out,{DISK_SETTING}",
    ]  # fmt: skip


def execute(builds: Builds, run: Execution, captured_bytes: int) -> Outcome:
    """Run the plan in a machine; raw files and guest.json are left in the folder."""
    objects, run = bpf.files(run.plan), run.of(bpf.sent(in_real_time(run.plan, modules_of(run.plan))))
    begun, folder, console = time.monotonic(), run.folder, Console()
    work = folder / ".machine"
    work.mkdir()
    try:
        error, facts = _executed(builds, run, objects, captured_bytes, work, console)
    finally:
        shutil.rmtree(work)
    if facts:
        _keep(folder, facts)
    if console.disaster:
        error = failure("kernel", "vm", "\n".join(console.disaster))
    elif error is None and (wrong := builds.problems(facts.get("environment", {}))):
        error = failure("kernel", "vm", "; ".join(wrong))
    return Outcome(error, facts, time.monotonic() - begun, console.virtual_s)


def _executed(
    builds: Builds,
    run: Execution,
    objects: dict[str, Path | bytes],
    captured_bytes: int,
    work: Path,
    console: Console,
) -> tuple[dict[str, str] | None, dict[str, Any]]:
    plan, folder = run.plan, run.folder
    archive, disk = work / "initrd", work / "disk"
    _lay_out(builds, plan, objects, folder, archive)
    results_bytes = captured_bytes + (SYSTEM_MIB << 20)
    with disk.open("wb") as file:
        file.truncate(results_bytes)
    memory_mib = SYSTEM_MIB + ((2 * archive.stat().st_size + results_bytes + memory_bytes(plan)) >> 20)
    line = command(
        builds.kernel / "linux", archive, disk, memory_mib, random_seed(run.seed), (builds.kernel / SYSTEM).is_dir()
    )
    with (folder / "console.log").open("wb") as log:
        process = subprocess.Popen(
            line,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            preexec_fn=_before_exec,
            cwd="/",
        )
        assert process.stdout is not None
        try:
            fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
            stopped = follow(process, console, log, run, Stall(process.pid, PATIENCE))
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
    if stopped is not None:
        return stopped, {}
    _cut(folder / "console.log")
    with disk.open("rb") as stream:
        if stream.read(1) != b"\0":  # the machine came as far as to leave something
            stream.seek(0)
            try:
                unpack(stream, folder, _refuse)
            except tarfile.TarError as error:
                return failure("vm", "disk", f"its files cannot be read: {error}"), {}
    facts = facts_of(folder)
    return error_of(console, facts, process.returncode, folder / "console.log", "machine", "boot"), facts


def _lay_out(builds: Builds, plan: Plan, objects: dict[str, Path | bytes], folder: Path, archive: Path) -> None:
    """The machine's first root: user land, what the distribution's kernel may load, the agent, the plan."""
    modules = [builds.module(Path(module.path).stem) for module in plan.modules]
    files: dict[str, Path | bytes] = {
        **agent_files(modules),
        **objects,
        PROGRAM: ROOT / "hosts/vm/counted_guest.py",
        f"{OUT}/plan.json": folder / "plan.json",
    }
    with archive.open("wb") as out:
        with root().open("rb") as source:
            shutil.copyfileobj(source, out, 1 << 20)
        if (system := builds.kernel / SYSTEM).is_dir():
            more = initramfs.Archive(out)
            more.tree(system)
            more.end()
        initramfs.write(out, files)


def _cut(log: Path) -> None:
    """Leave out what the kernel says after the run's files are on the disk: when that is depends on the disk."""
    said, done, _ = log.read_bytes().partition(DONE)
    if done:
        log.write_bytes(said + done + b"\n")


def _keep(folder: Path, facts: dict[str, Any]) -> None:
    """Write down which clock it was, and what the run has cost: at 1 ns each, the CPU's busy time is its instructions."""
    busy_s = facts.pop("busy_s", None)
    instructions = None if busy_s is None else round(busy_s * 1e9) >> SHIFT
    keep_facts(folder, facts, kind="vm", accelerator="tcg", clock="counted", cpus=1, instructions=instructions)


def _refuse(name: str) -> None:
    raise WarpbedError(f"the machine has left {name!r}, which is no file of a run")


def _before_exec() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.setpgid(0, 0)  # Ctrl-C is for the controller, which ends its machines itself
    die_with_parent()
