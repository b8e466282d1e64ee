# SPDX-License-Identifier: Apache-2.0
"""Scripts of packetdrill in a guest: a real kernel's TCP on a clock that no other load can disturb.

Script and binary are the caller's; the guest sees this machine's file system read-only, and a copy of the scripts' folder.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from base.errors import UsageError, WarpbedError
from base.paths import ROOT
from base.watcher import watched_folder
from hosts.virtual import boot
from hosts.virtual.launch import EPOCH_NS, GuestKernel, random_seed
from plan.console import PREFIX

MEMORY_MIB = 512
SCRATCH = Path("/var/tmp")
"""Where copies for guests lie."""
MOST_FILES, MOST_BYTES = 5000, 50 << 20
"""Of the folder that is copied for the scripts."""
WALL_S = 60.0
"""The guest's start and end; each script may take its limit of virtual time on top, as wall time too."""


@dataclass(frozen=True)
class Answer:
    """How a script ended. code: of packetdrill, None where the limit was reached; virtual_s: how long it took in the guest."""

    script: Path
    code: int | None
    output: str
    virtual_s: float


def run(
    kernel: GuestKernel,
    binary: Path,
    scripts: Sequence[Path],
    *,
    root: Path,
    module: str = "",
    algorithm: str = "",
    arguments: Sequence[str] = (),
    limit_s: float = 60.0,
    seed: int = 1,
) -> list[Answer]:
    """All scripts in one guest, one after the other, each in a network namespace of its own.

    root: folder that holds the scripts and all that they name; module, algorithm: what is loaded before, and the default of
    new sockets; arguments: of packetdrill

    Raises UsageError for what cannot be run, WarpbedError where the guest does not get that far.
    """
    _check(binary, scripts, root)
    with watched_folder("warpbed-scripts-", SCRATCH) as folder:
        shutil.copy2(binary, folder / "binary")
        shutil.copytree(root, folder / "scripts", symlinks=True)
        places = [Path("scripts") / script.relative_to(root) for script in scripts]
        orders = {
            "binary": "binary", "module": module, "algorithm": algorithm, "limit_s": limit_s,
            "arguments": list(arguments),
            "scripts": [{"folder": str(place.parent), "file": place.name} for place in places],
        }  # fmt: skip
        (folder / "orders.json").write_text(json.dumps(orders))
        console = _boot(kernel, folder, WALL_S + limit_s * len(scripts), seed)
        file = folder / "answers.json"
        answers = json.loads(file.read_text()) if file.exists() else []
    if len(answers) < len(scripts) or f"{PREFIX}done" not in console:
        raise WarpbedError(f"the guest ended at {scripts[min(len(answers), len(scripts) - 1)]}: {_end(console)}")
    return [Answer(script, **answer) for script, answer in zip(scripts, answers, strict=True)]


def _check(binary: Path, scripts: Sequence[Path], root: Path) -> None:
    if not binary.is_file() or not os.access(binary, os.X_OK):
        raise UsageError(f"--binary {binary}: no program; a packetdrill that was built on this machine is needed")
    if not root.is_dir():
        raise UsageError(f"--root {root}: no such folder")
    for script in scripts:
        if not script.is_file():
            raise UsageError(f"{script}: no such file")
        if not script.is_relative_to(root):
            raise UsageError(
                f"{script}: not below {root}; --root FOLDER names a folder that holds all scripts and what they use"
            )
    files = [file for file in root.rglob("*") if file.is_file() and not file.is_symlink()]
    total = sum(file.stat().st_size for file in files)
    if len(files) > MOST_FILES or total > MOST_BYTES:
        raise UsageError(
            f"{root}: {len(files)} files with {total >> 20} MiB are copied for the guest; at most {MOST_FILES} with "
            f"{MOST_BYTES >> 20} MiB; "
            "put the scripts into a folder of their own"
        )


def _boot(kernel: GuestKernel, folder: Path, wall_s: float, seed: int) -> str:
    """Start the guest and wait for its end; what it has said."""
    line = boot.arguments(
        kernel, MEMORY_MIB, boot.SYSTEM_PYTHON, "loglevel=4", "ipv6.disable_ipv6=1", *boot.shares(kernel, folder),
        *boot.python(ROOT / "hosts/virtual/scripts_guest.py"), start_ns=EPOCH_NS, seed=random_seed(seed),
    )  # fmt: skip
    try:
        done = subprocess.run(
            boot.caged(min(os.sched_getaffinity(0)), folder, line, boot.places(kernel)),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=wall_s,
            env=boot.environment(), cwd="/",
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        return f"not at its end after {wall_s:.0f} s\n" + (error.stdout or b"").decode(errors="replace")
    return done.stdout.decode(errors="replace")


def _end(console: str) -> str:
    lines = [line.removeprefix(PREFIX).strip() for line in console.splitlines() if line.strip()]
    return " / ".join(lines[-4:]) or "it said nothing"
