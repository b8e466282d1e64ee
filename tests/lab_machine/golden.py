# SPDX-License-Identifier: Apache-2.0
"""Golden runs on emulated CPUs: are their packets those that the repository knows?

    python -m tests.lab_machine.golden [--only NAME] [--cpu MODEL]...

Boots the tests' lab machine (QEMU without KVM) with each CPU model, executes the golden runs in it by the same kernel build and the
same pinned user land, and compares the digests. Ends with 1 where one differs. Some minutes for each run.
"""

from __future__ import annotations

import argparse
import io
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path

from base.paths import ROOT, SENT_PACKAGES
from benchmarks import golden
from hosts.base import Execution
from hosts.virtual import boot, launch, pinned
from hosts.virtual.kernel import find
from hosts.virtual.launch import GuestKernel
from tests.lab_machine.machine import LabMachine, running

MODELS = ("SandyBridge", "Haswell-noTSX", "EPYC")
"""Not `qemu64`: there the guest's kernel cannot fetch the registers of its processes, and does not start."""
THERE = "/golden"
RUN_S = 3600.0


def archive(kernel: GuestKernel, root: Path) -> bytes:
    """What the machine needs to start guests: kernel, modules, user land, the project's programs in them."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.add(kernel.linux.resolve(), "linux")
        tar.add(kernel.modules, "modules")
        tar.add(root, "root")
        for package in (*SENT_PACKAGES, "topologies"):
            tar.add(
                ROOT / package,
                f"checkout/{package}",
                filter=lambda entry: None if "__pycache__" in entry.name else entry,
            )
    return buffer.getvalue()


def line(kernel: GuestKernel, run: Execution, root: Path) -> list[str]:
    """The guest's command line as `launch.command` has it, with the machine's places."""
    places = {str(run.folder): f"{THERE}/out", str(root): f"{THERE}/root", str(ROOT): f"{THERE}/checkout",
              str(kernel.linux): f"{THERE}/linux", str(kernel.modules): f"{THERE}/modules"}  # fmt: skip
    command = launch.command(kernel, run)
    argv = command[command.index("--") + 1 :]
    for here, there in places.items():
        argv = [word.replace(here, there) for word in argv]
    return argv


def execute(machine: LabMachine, kernel: GuestKernel, run: Execution, root: Path) -> None:
    """Execute one plan in the machine; its raw files come into the run's folder."""
    run = run.of(run.plan)
    machine.run("sh", "-c", f"rm -rf {THERE}/out && mkdir {THERE}/out")
    machine.remote.put({f"{THERE}/out/plan.json": run.folder / "plan.json"})
    environment = [f"{name}={value}" for name, value in boot.ENVIRONMENT.items()]
    done = machine.remote.call("env", "-i", *environment, "setarch", "-R", *line(kernel, run, root), timeout_s=RUN_S)
    (run.folder / "console.log").write_bytes(done.stdout + done.stderr)
    machine.remote.get(f"{THERE}/out", run.folder)
    if "WARPBED done" not in done.stdout.decode(errors="replace"):
        raise RuntimeError((done.stdout + done.stderr).decode(errors="replace")[-2000:])


def compared(model: str, names: Iterable[str], folder: Path) -> int:
    """Print for each run whether its packets are those of the repository; how many are not."""
    kernel, root = find("default"), pinned.root()
    if root is None:
        raise SystemExit("WARPBED_USERLAND=host: the machine has another user land")
    known, differing = golden.known(kernel), 0
    if known is None:
        raise SystemExit(f"no digests for {golden.identity(kernel)}")
    with running(folder, model) as machine:
        cpu = next(text for text in machine.run("cat", "/proc/cpuinfo").splitlines() if text.startswith("model name"))
        print(f"{model}: {cpu.partition(': ')[2]}", flush=True)
        machine.run(
            "sh",
            "-c",
            f"mkdir -p {THERE} /dev/shm; grep -q ' /dev/shm ' /proc/mounts || busybox mount -t tmpfs tmpfs /dev/shm",
        )
        machine.remote.run("tar", "-x", "-C", THERE, data=archive(kernel, root), timeout_s=RUN_S)
        for name in names:
            packets = golden.run(
                name, kernel, folder / model / name, 0, lambda kernel, run: execute(machine, kernel, run, root)
            )
            differing += packets != known[name]
            print(f"  {name:12}{'same' if packets == known[name] else 'NOT AS RECORDED'}", flush=True)
    return differing


def main() -> int:
    parser = argparse.ArgumentParser(description="Execute golden runs on emulated CPUs and compare their packets.")
    parser.add_argument("--only", default="", help="runs whose name contains this")
    parser.add_argument("--cpu", action="append", help=f"models of QEMU's ({', '.join(MODELS)})")
    options = parser.parse_args()
    names = [name for name in golden.FILES if options.only in name]
    with tempfile.TemporaryDirectory(prefix="warpbed-golden-", dir="/var/tmp") as folder:
        return 1 if sum(compared(model, names, Path(folder)) for model in options.cpu or MODELS) else 0


if __name__ == "__main__":
    raise SystemExit(main())
