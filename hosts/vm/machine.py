# SPDX-License-Identifier: Apache-2.0
"""One virtual machine: started, reached, and gone with whoever started it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from base.errors import WarpbedError
from base.linux import die_with_parent
from hosts.remote import Remote, RemoteError
from hosts.virtual.console import Console
from hosts.vm import qemu
from plan.console import BOOTED

BOOT_S = {"kvm": 60.0, "tcg": float(os.environ.get("WARPBED_BOOT_S", "240"))}
"""A boot that takes longer does not come back. Emulated machines boot in about ten seconds on an idle CPU."""
RETRY_S = 0.5
HOST_ALIAS = "warpbed-vm"
ATTEMPTS = 3


class BootError(WarpbedError):
    """A machine that does not come up; the text is what it said last."""


@dataclass(frozen=True)
class Spec:
    """What a machine is made of. `name` is for messages and files."""

    name: str
    kernel: Path
    image: Path
    memory_mib: int
    cpus: int
    accelerator: str
    nics: tuple[qemu.Nic, ...] = ()


class Machine:
    """A running QEMU and the way into its guest."""

    def __init__(self, spec: Spec, process: subprocess.Popen[bytes], remote: Remote, log: Path) -> None:
        self.spec, self.remote = spec, remote
        self._process, self._log = process, log

    def words(self) -> str:
        """The last lines of its console, or the kernel's panic, oops or warning."""
        console = Console()
        lines = self._log.read_text(errors="replace").splitlines()
        for line in lines:
            console.line(line)
        return "\n".join(console.disaster or lines[-5:]) or "no output"

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def wait_booted(self, cancelled: Callable[[], bool], side_by_side: int = 1) -> None:
        """Wait until a program can be run in it; raises BootError where that does not come.

        side_by_side: machines that boot at the same time; emulated ones share this machine's CPUs
        """
        boot_s = BOOT_S[self.spec.accelerator] * max(1.0, side_by_side / len(os.sched_getaffinity(0)))
        until = time.monotonic() + boot_s
        while True:
            if cancelled():
                raise BootError("interrupted")
            if not self.is_alive:
                raise BootError(f"QEMU ended (code {self._process.returncode}): {self.words()}")
            if BOOTED in self._log.read_text(errors="replace"):
                try:
                    self.remote.run("true")
                except RemoteError as error:
                    if error.is_final:
                        raise BootError(str(error)) from error
                else:
                    return
            if time.monotonic() > until:
                raise BootError(f"not up after {boot_s:.0f} s: {self.words()}")
            time.sleep(RETRY_S)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@contextlib.contextmanager
def started(specs: Sequence[Spec], folder: Path) -> Iterator[list[Machine]]:
    """Start machines side by side; their consoles go to `<name>.console` in `folder`. They end with the body."""
    machines: list[Machine] = []
    try:
        for spec in specs:
            machines.append(_start(spec, folder / f"{spec.name}.console"))
        yield machines
    finally:
        for machine in machines:
            machine.kill()


def _start(spec: Spec, log: Path) -> Machine:
    """Start QEMU; again with another port where somebody else was faster to take it."""
    for _ in range(ATTEMPTS - 1):
        machine = _start_once(spec, log)
        time.sleep(0.2)
        if machine.is_alive or "Could not set up host forwarding rule" not in log.read_text(errors="replace"):
            return machine
    return _start_once(spec, log)


def _start_once(spec: Spec, log: Path) -> Machine:
    port = _free_port()
    line = qemu.command(spec.kernel, spec.image, spec.memory_mib, spec.cpus, spec.accelerator, port, spec.nics)
    with open(log, "wb") as out:
        process = subprocess.Popen(
            line,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            pass_fds=[nic.fd for nic in spec.nics],
            preexec_fn=_before_exec,
            cwd="/",
        )
    keys = spec.image.parent
    remote = Remote("127.0.0.1", port, "root", keys / "id_ed25519", keys / "known_hosts", HOST_ALIAS)
    return Machine(spec, process, remote, log)


def _before_exec() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.setpgid(0, 0)  # Ctrl-C is for the controller, which ends its machines itself
    die_with_parent()


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])
