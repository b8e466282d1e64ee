# SPDX-License-Identifier: Apache-2.0
"""Start QEMU: its command line, and whether KVM really runs a guest here."""

from __future__ import annotations

import functools
import os
import re
import selectors
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from base.linux import die_with_parent
from hosts.vm import tsc

QEMU = "qemu-system-x86_64"
CONTROL_MAC = "52:54:00:57:42:01"
"""The image's boot script knows the control interface by it."""
PROBE_S = 10.0
APPEND = "console=ttyS0 loglevel=4 panic=-1 reboot=t ipv6.disable_ipv6=1 tsc=reliable no_timer_check"
"""reboot=t: a machine has no firmware to go back to; a kernel that panics ends its QEMU by a triple fault.

no_timer_check: on a busy computer QEMU's ticks come too late for the boot's test of the timer, and the kernel would panic."""
EMULATED = "mitigations=off nokaslr norandmaps"
"""Of an emulated CPU, whose machines then boot and compute with a quarter less: no mitigations, which cost it at each indirect call and
protect it from nobody, and fixed addresses, since QEMU translates a program anew for each address that it finds it at."""
MAX_NICS = 5
"""QEMU's microvm has eight places for virtio devices: disk, random numbers and control take three."""


@dataclass(frozen=True)
class Nic:
    """An interface of the experiment: `fd` is one end of a pair of datagram sockets, the cable."""

    mac: str
    fd: int


@dataclass(frozen=True)
class Accelerator:
    """ "kvm" or "tcg" (an emulated CPU), and why that one."""

    name: str
    reason: str


def command(
    kernel: Path, image: Path, memory_mib: int, cpus: int, accelerator: str, ssh_port: int, nics: Sequence[Nic]
) -> list[str]:
    """QEMU's command line for a machine whose console is its standard output."""
    line = [
        QEMU,
        "-M", "microvm,acpi=off,rtc=on,isa-serial=on,auto-kernel-cmdline=on",
        *_accelerated(accelerator),
        "-smp", str(cpus), "-m", f"{memory_mib}M",
        "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-serial", "stdio",
        "-rtc", "base=utc,clock=host",
        "-kernel", str(kernel),
        "-append", f"{APPEND}{_emulated(accelerator)} root=/dev/vda ro init=/sbin/init",
        "-drive", f"id=root,file={escaped(image)},format=raw,if=none,readonly=on",
        "-device", "virtio-blk-device,drive=root",
        "-device", "virtio-rng-device",
        "-netdev", f"user,id=control,restrict=on,hostfwd=tcp:127.0.0.1:{ssh_port}-10.0.2.15:22",
        "-device", f"virtio-net-device,netdev=control,mac={CONTROL_MAC}",
    ]  # fmt: skip
    for number, nic in enumerate(nics):
        line += ["-netdev", f"socket,id=n{number},fd={nic.fd}"]
        line += ["-device", f"virtio-net-device,netdev=n{number},mac={nic.mac}"]
    return line


def _emulated(accelerator: str) -> str:
    """Under KVM the machine has KVM's clock."""
    return f" tsc_early_khz={tsc.khz()} {EMULATED}" if accelerator == "tcg" else ""


def _accelerated(accelerator: str) -> list[str]:
    return ["-accel", "kvm", "-cpu", "host"] if accelerator == "kvm" else ["-accel", "tcg", "-cpu", "max"]


def escaped(path: Path) -> str:
    return str(path).replace(",", ",,")


@functools.cache
def accelerator(kernel: Path) -> Accelerator:
    """KVM where this kernel really starts under it, else TCG: /dev/kvm can be there and not work."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return Accelerator("tcg", "/dev/kvm is missing or not accessible")
    refusal = _start_without_root(kernel)
    if refusal is None:
        return Accelerator("kvm", "a guest starts under it")
    return Accelerator("tcg", f"/dev/kvm is there, but no guest starts under it: {refusal}")


def _start_without_root(kernel: Path) -> str | None:
    """Start a kernel that can only panic for want of a root; None once it says its name, else what went wrong."""
    line = [
        QEMU, "-M", "microvm,acpi=off,isa-serial=on", *_accelerated("kvm"), "-m", "128M", "-nodefaults",
        "-no-user-config", "-display", "none", "-no-reboot", "-serial", "stdio",
        "-kernel", str(kernel), "-append", "console=ttyS0 panic=-1 earlyprintk=serial",
    ]  # fmt: skip
    process = subprocess.Popen(
        line, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, preexec_fn=die_with_parent
    )
    assert process.stdout is not None
    output, until = b"", time.monotonic() + PROBE_S
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while (rest := until - time.monotonic()) > 0:
                if selector.select(rest):
                    data = os.read(process.stdout.fileno(), 65536)
                    output += data
                    if b"Linux version" in output:
                        return None
                    if not data:
                        break
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    lines = [text for text in output.decode(errors="replace").splitlines() if re.search(r"\w", text)]
    return lines[0] if lines else f"nothing in {PROBE_S:.0f} s"


def version() -> str:
    """First line of what QEMU says of itself; empty where it is not installed."""
    try:
        completed = subprocess.run([QEMU, "--version"], capture_output=True, text=True)
    except OSError:
        return ""
    return completed.stdout.partition("\n")[0]
