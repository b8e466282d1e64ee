# SPDX-License-Identifier: Apache-2.0
"""Run a program that can write nowhere but in one folder and that never outlives who started it.

    python -I cage.py CPU FOLDER PROGRAM [ARGUMENT ...]

The program gets namespaces of its own: every mount is read-only except FOLDER and a private tmpfs on /dev/shm (where
the guest's memory lives), /dev has a few harmless devices, there is no network but an empty one, and a PID namespace, so all that it starts
ends with it. It has no capability and can get none: of root's it keeps those that open files whatever their mode, because the
run's folder may lie below a folder of another user; what they could write is mounted read-only. It is not its namespace's process 1
itself: the kernel shields process 1 from signals without a handler, and a guest that panics ends by aborting. It dies when
this process dies, and this process dies with the thread that started it, also after kill -9. Needs no root where the
kernel allows user namespaces; without them (some containers) only the mounts stay as they are, and exit code 3 is
given if the caller asked for a cage with WARPBED_CAGE=required. A run without a cage is marked so by its verdict.
"""

from __future__ import annotations

import contextlib
import os
import resource
import sys

sys.path.insert(0, os.path.abspath(f"{__file__}/../../.."))  # a program of its own, which starts with an empty path

from base.linux import (
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    MS_BIND,
    MS_NODEV,
    MS_NOSUID,
    MS_PRIVATE_REC,
    die_with_parent,
    drop_capabilities,
    libc,
    mount,
    read_only,
    unshare,
)

ADDR_NO_RANDOMIZE = 0x0040000
NAMESPACES = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC
DEVICES = ("null", "zero", "full", "random", "urandom")
CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 1, 2
EXIT_NO_CAGE = 3
STARTER = "WARPBED_STARTER"
"""Process that has started this one; the program does not see it."""


def _own_namespaces() -> None:
    uid, gid = os.getuid(), os.getgid()
    if uid == 0 and libc.unshare(NAMESPACES) == 0:
        return
    unshare(CLONE_NEWUSER | NAMESPACES)
    for file, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{file}", "w") as out:
            out.write(text)


def _own_mounts(folder: str) -> None:
    mount("none", "/", "", MS_PRIVATE_REC)
    mount(folder, folder, "", MS_BIND)
    read_only("/", recursive=True)
    read_only(folder, recursive=False, on=False)
    _own_devices()
    os.mkdir("/dev/shm", 0o1777)
    try:  # the guest's memory, in large pages where this machine's kernel has them
        mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "size=100%,huge=within_size")
    except OSError:
        mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "size=100%")
    read_only("/dev", recursive=False)


def _own_devices() -> None:
    """A /dev of a few devices: those of root's own could be written, whatever is mounted read-only."""
    with contextlib.ExitStack() as opened:
        fds = {name: os.open(f"/dev/{name}", os.O_PATH) for name in DEVICES if os.path.exists(f"/dev/{name}")}
        for fd in fds.values():
            opened.callback(os.close, fd)
        mount("tmpfs", "/dev", "tmpfs", MS_NOSUID, "size=64k,mode=755")
        for name, fd in fds.items():
            os.close(os.open(f"/dev/{name}", os.O_CREAT | os.O_WRONLY, 0o644))
            mount(f"/proc/self/fd/{fd}", f"/dev/{name}", "", MS_BIND)
    os.symlink("/proc/self/fd", "/dev/fd")


def enter(folder: str) -> bool:
    """Make the cage around this process and its children; False where the kernel does not allow it."""
    try:
        _own_namespaces()
        _own_mounts(folder)
    except OSError as error:
        print(f"cage: {error.strerror}", file=sys.stderr, flush=True)
        return False
    return True


def main(arguments: list[str]) -> int:
    cpu, folder, program = int(arguments[0]), arguments[1], arguments[2:]
    # Python takes its time to start, and who started it may have been killed meanwhile
    starter = os.environ.pop(STARTER, None)
    die_with_parent(None if starter is None else int(starter))
    os.sched_setaffinity(0, {cpu})
    libc.personality(ADDR_NO_RANDOMIZE)  # guests before 7.2 size their memory by where the host put them
    caged = enter(folder)
    if not caged and os.environ.get("WARPBED_CAGE") == "required":
        return EXIT_NO_CAGE
    if not caged:
        os.environ["TMPDIR"] = memory_place()
    child = os.fork()
    if child == 0:
        die_with_parent()
        if caged:
            with contextlib.suppress(OSError):  # in a container that hides parts of /proc; the guest needs none of them
                mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV)
                read_only("/proc", recursive=False)
            drop_capabilities(keep=(CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH) if os.getuid() == 0 else ())
        os._exit(_exit_code(_start(program)))
    return _exit_code(child)


def memory_place(places: tuple[str, ...] = ("/dev/shm", "/tmp")) -> str:
    """Where a guest without a cage keeps its memory, which has to be executable: containers often have a /dev/shm that forbids it."""
    for place in places:
        with contextlib.suppress(OSError):
            if not os.statvfs(place).f_flag & os.ST_NOEXEC:
                return place
    return places[0]


def _start(program: list[str]) -> int:
    """Start the program; returns its process id."""
    child = os.fork()
    if child == 0:
        die_with_parent()
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a guest's core would be all of its memory
        os.execv(program[0], program)
    return child


def _exit_code(child: int) -> int:
    """Wait for a child; its exit code, or 128 and its signal's number."""
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
