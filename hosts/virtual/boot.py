# SPDX-License-Identifier: Apache-2.0
"""How any guest is started: the kernel's arguments, the cage, and what of this machine the guest mounts (agent.init)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from base.paths import ROOT

SYSTEM_PYTHON = "/usr/bin/python3"
HOST_ROOT = Path("/")
START = "/warpbed/start.py"
"""In a root of the guests' own: mounts the checkout, which does not lie in it."""
CAGE = ROOT / "hosts/virtual/cage.py"
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "TMPDIR": "/dev/shm", "LANG": "C.UTF-8"}
"""Of the guest's own process, whoever starts it."""
STARTER = "WARPBED_STARTER"
"""Says to the cage which process has to live for it to go on; the guest's process does not get it."""
CAGE_SETTING = "WARPBED_CAGE"
"""What the caller asks of the cage (hosts.virtual.cage)."""


def environment() -> dict[str, str]:
    """The environment of the cage and of the guest's process: fixed, but for what the caller asks of the cage."""
    asked = {CAGE_SETTING: os.environ[CAGE_SETTING]} if CAGE_SETTING in os.environ else {}
    return {**ENVIRONMENT, STARTER: str(os.getpid()), **asked}


class Kernel(Protocol):
    """A kernel build (hosts.virtual.launch.GuestKernel)."""

    @property
    def linux(self) -> Path: ...
    @property
    def modules(self) -> Path: ...
    @property
    def has_seccomp(self) -> bool: ...


def arguments(
    kernel: Kernel,
    memory_mib: int,
    init: str | Path,
    *more: str,
    start_ns: int | None = None,
    seed: int = 1,
    folder: str | Path = "/dev/shm",
    name: str = "warpbed",
    root: Path = HOST_ROOT,
) -> list[str]:
    """A guest kernel and its command line: a file system read-only, the console on standard output.

    init: the first process; more: further arguments, after `--` those of the first process
    start_ns: when its clock starts in virtual time; None: in real time
    seed: of its random numbers, in virtual time
    folder: where it keeps its memory and, in a folder `name`, its control socket
    root: the folder of this machine that is its root (hosts.virtual.pinned)
    """
    virtual = ["time-travel=inf-cpu", f"time-travel-start={start_ns}", f"um_seed={seed}"]
    return [
        str(kernel.linux),
        f"mem={memory_mib}M",
        "root=/dev/root",
        "rootfstype=hostfs",
        f"rootflags={_quoted(root)}",
        "ro",
        f"init={init}",
        *(virtual if start_ns is not None else ()),
        "con=null",
        "con0=null,fd:1",
        "con1=null",
        f"uml_dir={folder}",
        f"umid={name}",
        *(["seccomp=on"] if kernel.has_seccomp else ()),
        "random.trust_cpu=1",  # 6.1 else has no random numbers for the first process, whose root has no /dev/urandom
        *more,
    ]


def shares(kernel: Kernel, folder: Path) -> list[str]:
    """Arguments by which agent.init knows what to mount: the checkout, the run's folder, the modules."""
    places = {"WARPBED_SOURCE": ROOT, "WARPBED_OUT": folder, "WARPBED_MODULES": kernel.modules}
    return [f"{name}={_quoted(place)}" for name, place in places.items()]


def python(program: Path, *options: str, root: Path = HOST_ROOT) -> list[str]:
    """Arguments that make a program of the checkout the first process, beside `init=SYSTEM_PYTHON`."""
    started = [_quoted(program)] if root == HOST_ROOT else [START, str(program.relative_to(ROOT))]
    return ["--", "-B", "-I", *started, *options]


def places(kernel: Kernel, root: Path = HOST_ROOT) -> list[Path]:
    """What a guest needs of this machine beside its programs and the run's folder."""
    return [ROOT, kernel.linux, kernel.modules, *([] if root == HOST_ROOT else [root])]


def caged(cpu: int | str, folder: Path, line: Sequence[str], places: Sequence[Path] = ()) -> list[str]:
    """A command line in the cage, which can write in one folder only, and of others sees `places` and what any program needs."""
    return [SYSTEM_PYTHON, "-I", str(CAGE), str(cpu), str(folder), *map(str, places), "--", *line]


def _quoted(path: Path) -> str:
    """As the kernel's command line takes it: blanks need quotes, and there is no way to write a quote inside them."""
    return f'"{path}"' if " " in str(path) else str(path)
