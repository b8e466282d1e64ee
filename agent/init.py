# SPDX-License-Identifier: Apache-2.0
"""The guest's first process: mount what a run needs, execute the plan, power off.

Arguments, by environment from the kernel's command line: WB_SOURCE (the checkout), WB_OUT (the run's folder, the only
place of the host that the guest can write), WB_MODULES (the kernel build's modules).
"""

from __future__ import annotations

import ctypes
import os
import sys
import traceback
from pathlib import Path

MS_RDONLY, MS_NOSUID, MS_NODEV = 1, 2, 4
REBOOT_POWER_OFF = 0x4321FEDC
SYSLOG_CONSOLE_LEVEL, LOG_ALL = 8, 8
PREFIX = "WARPBED "
"""Starts every line that is meant for the launcher."""
SOURCE, OUT, MODULES = "/run/warpbed/source", "/run/warpbed/out", "/run/warpbed/modules"

_libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: str, kind: str, flags: int = 0, options: str = "") -> None:
    if _libc.mount(source.encode(), target.encode(), kind.encode(), flags, options.encode()):
        raise OSError(ctypes.get_errno(), f"mount {kind} on {target}: {os.strerror(ctypes.get_errno())}")


def mount_all() -> None:
    """The guest's own /proc, /sys, /dev, /run, /tmp … over the host's file system, which is read-only."""
    mount("proc", "/proc", "proc")
    mount("sysfs", "/sys", "sysfs")
    mount("tracefs", "/sys/kernel/tracing", "tracefs")
    mount("devtmpfs", "/dev", "devtmpfs")
    os.makedirs("/dev/pts", exist_ok=True)
    os.makedirs("/dev/shm", exist_ok=True)
    mount("devpts", "/dev/pts", "devpts", 0, "ptmxmode=0666")
    for folder in ("/dev/shm", "/run", "/tmp", "/var/tmp", "/root", "/home", "/mnt"):
        if os.path.isdir(folder):
            mount("tmpfs", folder, "tmpfs", MS_NOSUID | MS_NODEV)
    for name, target, flags in (
        ("WB_SOURCE", SOURCE, MS_RDONLY),
        ("WB_OUT", OUT, 0),
        ("WB_MODULES", MODULES, MS_RDONLY),
    ):
        os.makedirs(target)
        mount("hostfs", target, "hostfs", flags, os.environ[name])


def say(text: str) -> None:
    print(PREFIX + text, flush=True)


def hear_everything() -> None:
    """From here on all that the kernel says goes to the console: of a panic, the function it happened in is but "info"."""
    _libc.klogctl(SYSLOG_CONSOLE_LEVEL, None, LOG_ALL)


def main() -> None:
    mount_all()
    hear_everything()
    sys.path.insert(0, SOURCE)
    os.chdir("/tmp")
    os.environ.clear()
    os.environ.update(PATH="/usr/sbin:/usr/bin:/sbin:/bin", HOME="/root", LANG="C.UTF-8", TERM="dumb")
    from agent import tcp_memory
    from agent.main import execute
    from plan.model import from_json

    tcp_memory.unlimited()
    plan = from_json(Path(OUT, "plan.json").read_text())
    execute(plan, Path(OUT), say)
    say("done")


if __name__ == "__main__":
    try:
        main()
    except BaseException:  # noqa: BLE001 — whatever it is, the launcher must hear of it
        for line in traceback.format_exc().splitlines():
            say("error " + line)
    finally:
        os.sync()
        _libc.reboot(REBOOT_POWER_OFF)
