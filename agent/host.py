# SPDX-License-Identifier: Apache-2.0
"""Execute a plan in real time, in namespaces that end with this process: the first program of a run on a real kernel.

    python3 -B -P -m agent.host FOLDER [TRACING]

FOLDER holds plan.json and gets the raw files; TRACING is a folder of tracefs for the run's own (an instance), on a machine that
must stay as it is; without it the machine is the run's own. Prints the
agent's events, as the virtual host's guest does, and ends when its standard input ends, with all that it has started.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import traceback
from pathlib import Path

from base.linux import (
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    MS_PRIVATE_REC,
    die_with_parent,
    mount,
    unshare,
)
from plan.console import say

CABLING = "cabling.json"
"""In FOLDER where this machine is one node of several."""

VM_BOOT = Path("/etc/warpbed/boot")
"""What only machines of the role vm_image have (hosts.vm.image)."""


def _mount_again(source: str, target: str, kind: str) -> None:
    """Mount; the very same file system may be there already, as sysfs is on a machine whose network namespace is kept."""
    try:
        mount(source, target, kind)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise


def _run(folder: Path, tracing: Path, own_network: bool) -> int:
    """The first process of the PID namespace."""
    mount("none", "/", "", MS_PRIVATE_REC)
    _mount_again("proc", "/proc", "proc")
    if own_network:  # /sys shows the network namespace that it was mounted in
        _mount_again("sysfs", "/sys", "sysfs")
        _mount_again("tracefs", "/sys/kernel/tracing", "tracefs")
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
            setting = Setting(tracing, pace, lambda plan: MachineNetwork(plan, cabling), node=cabling.node)
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
    with contextlib.ExitStack() as stack:
        if not VM_BOOT.exists():  # this machine is there after the run, and so would what it changes be
            from agent.left_behind import watched

            stack.enter_context(watched())
        unshare(CLONE_NEWNS | CLONE_NEWPID | network)
        child = os.fork()
        if child == 0:
            die_with_parent()
            os._exit(_run(folder, tracing, network != 0))
        _, status = os.waitpid(child, 0)
    return abs(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
