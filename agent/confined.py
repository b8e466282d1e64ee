# SPDX-License-Identifier: Apache-2.0
"""A program that others' packets reach, on a machine that is not ours: as a user that nobody else is, in a read-only world, with limits.

The same with systemd and without it: namespaces and limits of the kernel. Started by root; where the caller is no
root already, what root alone can do is left out.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import resource
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from agent.errors import RunError
from base.linux import (
    CLONE_NEWIPC,
    CLONE_NEWNS,
    MS_PRIVATE_REC,
    die_with_parent,
    drop_capabilities,
    mount,
    read_only,
    unshare,
)

USERS = range(61184, 65520)
"""The numbers that systemd gives to users of services which exist while the service runs."""
MEMORY_BYTES, FILES, OUTPUT_BYTES, PROCESSES = 256 << 20, 32, 64 << 10, 1


ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}


def facts(pid: int) -> dict[str, Any]:
    """User, capabilities and limits of a process as the kernel tells them."""
    folder = Path(f"/proc/{pid}")
    status = dict(line.split(":\t", 1) for line in (folder / "status").read_text().splitlines() if ":\t" in line)
    limits = {line[:26].strip(): line[26:47].strip() for line in (folder / "limits").read_text().splitlines()[1:]}
    root = next(line for line in (folder / "mounts").read_text().splitlines() if line.split()[1] == "/")
    own_mounts = os.readlink(folder / "ns/mnt") != os.readlink("/proc/self/ns/mnt")
    return {
        "uid": int(status["Uid"].split()[0]),
        "capabilities": int(status["CapEff"], 16),
        "no_new_privs": status["NoNewPrivs"] == "1",
        "read_only": own_mounts and "ro" in root.split()[3].split(","),
        "memory_bytes": limits["Max address space"],
        "cpu_s": limits["Max cpu time"],
        "file_bytes": limits["Max file size"],
        "files": limits["Max open files"],
    }


def unused_user() -> int:
    """The number of a user that is not in the machine's list and has no process."""
    known = {entry.pw_uid for entry in pwd.getpwall()}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            known.add(folder.stat().st_uid)
    return next(number for number in USERS if number not in known)


def start(
    program: bytes, arguments: Sequence[str], interpreter: str, cpu_s: float, out: IO[bytes]
) -> subprocess.Popen[bytes]:
    """Start a Python program, which comes by a descriptor and so needs no readable file, with its words on `out`; its standard input
    is a pipe, its environment ours alone.

    cpu_s: CPU time after which the kernel ends it
    Raises RunError where the user cannot be changed or the interpreter not be started.
    """
    root = os.geteuid() == 0
    user = unused_user() if root else None

    def confine() -> None:
        for kind, limit in (
            (resource.RLIMIT_AS, MEMORY_BYTES),
            (resource.RLIMIT_NOFILE, FILES),
            (resource.RLIMIT_FSIZE, OUTPUT_BYTES),
            (resource.RLIMIT_CPU, max(1, int(cpu_s))),
            (resource.RLIMIT_CORE, 0),
        ):
            resource.setrlimit(kind, (limit, limit))
        if user is not None:
            with contextlib.suppress(
                OSError
            ):  # a container that allows no mounts: file modes alone protect it, and the verdict says so
                unshare(CLONE_NEWNS | CLONE_NEWIPC)
                mount("none", "/", "", MS_PRIVATE_REC)
                read_only("/", recursive=True)
            resource.setrlimit(resource.RLIMIT_NPROC, (PROCESSES, PROCESSES))
            os.chdir("/")
            os.setgroups([])
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
        drop_capabilities()
        die_with_parent()  # last: a change of the user takes it back

    source = os.memfd_create("program")
    try:
        with open(source, "wb", closefd=False) as file:
            file.write(program)
        line = [os.path.realpath(interpreter), "-B", "-I", "-S", f"/proc/self/fd/{source}", *arguments]
        return subprocess.Popen(
            line,
            env=ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=subprocess.STDOUT,
            preexec_fn=confine,
            pass_fds=(source,),
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise RunError("transfer", "receiver", f"cannot be started as a user of its own: {error}") from error
    finally:
        os.close(source)
