# SPDX-License-Identifier: Apache-2.0
"""Execute a plan in real time, in namespaces that end with this process: the first program of a run on a real kernel.

    python3 -B -P -m agent.host FOLDER [TRACING]

FOLDER holds plan.json and gets the raw files; TRACING is a folder of tracefs for the run's own (an instance), on a machine that
must stay as it is; without it the machine is the run's own. Prints the
agent's events, as the virtual host's guest does, and ends when its standard input ends, with all that it has started.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import sys
import traceback
from pathlib import Path

CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET = 0x20000, 0x20000000, 0x40000000
MS_PRIVATE_REC = 0x44000
PR_SET_PDEATHSIG = 1
PREFIX = "WARPBED "
CABLING = "cabling.json"
"""In FOLDER where this machine is one node of several."""

_libc = ctypes.CDLL(None, use_errno=True)

VM_BOOT = Path("/etc/warpbed/boot")
"""What only machines of the role vm_image have (hosts.vm.image)."""


def _check(result: int, what: str) -> None:
    if result:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def _mount(source: str, target: str, kind: str, flags: int = 0) -> None:
    failed = _libc.mount(source.encode(), target.encode(), kind.encode(), flags, None)
    # busy: the very same file system is mounted there already, as sysfs is on a machine whose network namespace is kept
    if failed and ctypes.get_errno() != errno.EBUSY:
        raise OSError(ctypes.get_errno(), f"mount {target}: {os.strerror(ctypes.get_errno())}")


def die_with_parent() -> None:
    """Ask the kernel to kill this process when the one that started it ends."""
    parent = os.getppid()
    _check(_libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def say(text: str) -> None:
    print(PREFIX + text, flush=True)


def _run(folder: Path, tracing: Path, own_network: bool) -> int:
    """The first process of the PID namespace."""
    _mount("none", "/", "", MS_PRIVATE_REC)
    _mount("proc", "/proc", "proc")
    if own_network:  # /sys shows the network namespace that it was mounted in
        _mount("sysfs", "/sys", "sysfs")
        _mount("tracefs", "/sys/kernel/tracing", "tracefs")
    from mininet.net import Mininet

    from agent import tcp_memory
    from agent.machine import MachineNetwork
    from agent.main import Setting, execute
    from agent.pace import Together
    from plan.model import cabling_from_json, from_json

    Mininet.inited = True  # or else it would change sysctls of the whole machine
    pace = Together(say)
    pace.listen()
    setting = Setting(tracing)
    try:
        if not own_network and VM_BOOT.exists():  # the machine is the run's own; a lab's keeps what its owner set
            tcp_memory.unlimited()
        plan = from_json((folder / "plan.json").read_text())
        if (file := folder / CABLING).exists():
            cabling = cabling_from_json(file.read_text())
            setting = Setting(tracing, pace, lambda plan: MachineNetwork(plan, cabling))
        execute(plan, folder, say, setting)
        say("done")
    except BaseException:  # noqa: BLE001 — whatever it is, the controller must hear of it
        for line in traceback.format_exc().splitlines():
            say("error " + line)
        return 1
    return 0


def main(arguments: list[str]) -> int:
    folder, tracing = Path(arguments[0]), Path(arguments[1] if len(arguments) > 1 else "/sys/kernel/tracing")
    die_with_parent()
    # a machine of our own is used as it is: its interfaces, and what only its first network namespace may allow
    network = CLONE_NEWNET if len(arguments) > 1 else 0
    _check(_libc.unshare(CLONE_NEWNS | CLONE_NEWPID | network), "unshare")
    child = os.fork()
    if child == 0:
        die_with_parent()
        os._exit(_run(folder, tracing, network != 0))
    _, status = os.waitpid(child, 0)
    return abs(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
