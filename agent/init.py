# SPDX-License-Identifier: Apache-2.0
"""The guest's first process: mount what a run needs, execute the plan, power off.

Arguments, by environment from the kernel's command line: WARPBED_SOURCE (the checkout), WARPBED_OUT (the run's folder, the only
place of the host that the guest can write), WARPBED_MODULES (the kernel build's modules).
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the first process finds the checkout by itself

from agent.plain_code import CHOICE
from base.linux import MS_NODEV, MS_NOSUID, MS_RDONLY, log_everything, mount, power_off
from plan.console import MODULES, OUT, SOURCE, say


def mount_all() -> None:
    """The guest's own /proc, /sys, /dev, /run, /tmp … over the host's file system, which is read-only.

    These may cover the checkout; what is imported from here on comes from SOURCE.
    """
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
        ("WARPBED_SOURCE", SOURCE, MS_RDONLY),
        ("WARPBED_OUT", OUT, 0),
        ("WARPBED_MODULES", MODULES, MS_RDONLY),
    ):
        os.makedirs(target)
        mount("hostfs", target, "hostfs", flags, os.environ[name])
    checkout = sys.path[0]
    sys.path[0] = SOURCE
    for module in sys.modules.values():  # packages of which more will be imported
        if any(place.startswith(f"{checkout}/") for place in getattr(module, "__path__", ())):
            module.__path__ = [place.replace(checkout, SOURCE, 1) for place in module.__path__]


def plain_environment(**kept: str) -> None:
    """What programs of a guest see of the environment is the same on every machine, but for what is kept."""
    os.environ.clear()
    os.environ.update(kept, PATH="/usr/sbin:/usr/bin:/sbin:/bin", HOME="/root", LANG="C.UTF-8", TERM="dumb")


def first_process(work: Callable[[], None]) -> None:
    """Do the work of a guest's first process, tell the launcher of whatever goes wrong, and power off."""
    try:
        work()
    except BaseException:  # noqa: BLE001 — whatever it is, the launcher must hear of it
        for line in traceback.format_exc().splitlines():
            say("error " + line)
    finally:
        power_off()


def without_setuptools() -> None:
    """Let Mininet's `import distutils.version` find Python's own.

    Where setuptools is installed it puts itself in front, and all of it would be imported: more than half of a guest's start.
    """
    if sys.version_info < (3, 12):
        sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "DistutilsMetaFinder"]


def main() -> None:
    mount_all()
    without_setuptools()
    log_everything()
    os.chdir("/tmp")
    host_folder = os.environ["WARPBED_OUT"]
    plain_environment(**{CHOICE: os.environ[CHOICE]})
    from agent import beginning, tcp_memory
    from agent.main import Setting, execute
    from plan.model import from_json

    tcp_memory.unlimited()
    plan = from_json(Path(OUT, "plan.json").read_text())
    pace = beginning.Forgetful()
    pace.gate("booted")
    execute(plan, Path(OUT), say, Setting(pace=pace, host_folder=host_folder))
    say("done")


if __name__ == "__main__":
    first_process(main)
