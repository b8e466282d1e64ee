# SPDX-License-Identifier: Apache-2.0
"""The first process of a machine whose clock counts instructions: mount what a run needs, execute the plan, hand over, end.

It finds all that it needs in its root, which lies in memory (hosts.vm.counted), and what it leaves goes to a disk at the very end:
from the boot to the run's end nothing comes from outside the machine, so that nothing depends on when something comes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import time
import traceback
from pathlib import Path
from typing import BinaryIO, cast

RUN = "/run/warpbed"
"""As in plan.console, which is found below it."""
sys.path[0] = f"{RUN}/source"

from agent import tcp_memory  # noqa: E402
from agent.init import plain_environment, without_setuptools  # noqa: E402
from agent.main import Setting, execute  # noqa: E402
from agent.pace import Alone  # noqa: E402
from agent.plain_code import CHOICE  # noqa: E402
from base.linux import libc, log_everything, mount  # noqa: E402
from plan.console import OUT, SOURCE, say  # noqa: E402
from plan.model import from_json  # noqa: E402

DISK = "/dev/vda"
DRIVERS = ("virtio_pci", "virtio_blk")
"""Of the disk, where they are a distribution's modules."""
RESTART = 0x1234567
"""LINUX_REBOOT_CMD_RESTART: without a firmware to go back to it ends the machine, which ACPI is not there to switch off."""
WRITTEN_BYTES = 8 << 20
"""So much is written before the next is taken into memory."""


class Metered(Alone):
    """Says what of the run's time the CPU has worked."""

    def __init__(self) -> None:
        self._begun: tuple[float, float] | None = None
        self.busy_s: float | None = None

    def start_s(self, settle_s: float, grid_s: int) -> float:
        self._begun = _times_s()
        return super().start_s(settle_s, grid_s)

    def gate(self, name: str) -> None:
        if name == "ended" and self._begun is not None:
            passed, idle = (now - then for now, then in zip(_times_s(), self._begun, strict=True))
            # by the account of 7.2 a CPU can be idle for longer than it was there
            self.busy_s = passed - idle if passed > idle else None


def _times_s() -> tuple[float, float]:
    """What has passed since the boot, and how much of it the only CPU was idle."""
    _, idle = Path("/proc/uptime").read_text().split()
    return time.clock_gettime(time.CLOCK_BOOTTIME), float(idle)


class _Disk:
    """Writes that do not fill the memory a second time."""

    def __init__(self, path: str) -> None:
        self._file, self._since = os.open(path, os.O_WRONLY), 0

    def write(self, data: bytes) -> int:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._file, rest) :]
        self._since += len(data)
        if self._since >= WRITTEN_BYTES:
            self.flush()
        return len(data)

    def flush(self) -> None:
        os.fsync(self._file)
        os.posix_fadvise(self._file, 0, 0, os.POSIX_FADV_DONTNEED)
        self._since = 0


def hand_over() -> None:
    """The run's files, one after another, as an archive on the disk."""
    if not os.path.exists(DISK):
        for driver in DRIVERS:
            subprocess.run(["modprobe", driver], check=True)
    disk = _Disk(DISK)
    with tarfile.open(fileobj=cast(BinaryIO, disk), mode="w|") as archive:
        for file in sorted(Path(OUT).iterdir()):
            if file.is_file():
                archive.add(file, file.name)
    disk.flush()


def main() -> None:
    for kind, target in (
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("tracefs", "/sys/kernel/tracing"),
        ("devtmpfs", "/dev"),
    ):
        mount(kind, target, kind)
    for folder in ("/dev/pts", "/dev/shm"):
        os.makedirs(folder, exist_ok=True)
    mount("devpts", "/dev/pts", "devpts", 0, "ptmxmode=0666")
    mount("tmpfs", "/dev/shm", "tmpfs")
    without_setuptools()
    log_everything()
    os.chdir("/tmp")
    plain_environment(PYTHONPATH=SOURCE, **{CHOICE: os.environ[CHOICE]})
    Path("/proc/sys/kernel/hostname").write_text("warpbed")
    say("booted")
    from mininet.net import Mininet

    Mininet.inited = True  # its settings are those of machines that many experiments share
    tcp_memory.unlimited()
    pace = Metered()
    try:
        execute(from_json(Path(OUT, "plan.json").read_text()), Path(OUT), say, Setting(pace=pace))
    finally:
        file = Path(OUT, "guest.json")
        if file.exists():
            facts = json.loads(file.read_text())
            facts["busy_s"] = pace.busy_s
            file.write_text(json.dumps(facts, indent=1, sort_keys=True))
            hand_over()
    say("done")


if __name__ == "__main__":
    try:
        main()
    except BaseException:  # noqa: BLE001 — whatever it is, the controller must hear of it
        for line in traceback.format_exc().splitlines():
            say("error " + line)
    finally:
        libc.reboot(RESTART)
