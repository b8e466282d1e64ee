# SPDX-License-Identifier: Apache-2.0
"""Run a program that can write nowhere but in one folder, reaches nobody outside and never outlives who started it.

    python -I cage.py CPU FOLDER [PLACE ...] -- PROGRAM [ARGUMENT ...]

The program gets namespaces of its own: a tree of folders in which there is nothing but the distribution's programs and the PLACEs
(folders or files), all read-only, FOLDER, and a private tmpfs on /dev/shm (where the guest's memory lives). Unix sockets and FIFOs of other
programs, which a read-only mount would not keep it from, are not in that tree. /dev has a few harmless devices, there is no network
but an empty one, and a PID namespace, so all that it starts ends with it. It has no capability and can get none: of root's it keeps
those that open files whatever their mode, because the run's folder may lie below a folder of another user; what they could write is
mounted read-only. It is not its namespace's process 1 itself: the kernel shields process 1 from signals without a handler, and a
guest that panics ends by aborting. It dies when this process dies, and this process dies with the thread that started it, also after
kill -9. Needs no root where the kernel allows user namespaces; without them (some containers) the program has this machine's files,
network and processes, but no capability either, and exit code 3 is given if the caller asked for a cage with WARPBED_CAGE=required.
A run without a cage is marked so by its verdict.
"""

from __future__ import annotations

import contextlib
import os
import resource
import sys
from collections.abc import Sequence

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
    MS_REC,
    die_with_parent,
    drop_capabilities,
    leave_old_root,
    libc,
    mount,
    pivot_root,
    read_only,
    unshare,
)

ADDR_NO_RANDOMIZE = 0x0040000
NAMESPACES = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC
DEVICES = ("null", "zero", "full", "random", "urandom")
PROGRAMS = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc")
"""Where a distribution has its programs and what they read."""
EMPTY = ("dev", "home", "mnt", "proc", "root", "run", "sys", "tmp", "var/lib/nginx", "var/log/nginx", "var/tmp")
"""Folders that a guest mounts something on, or whose programs want them to be there."""
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


def _own_mounts(folder: str, places: Sequence[str]) -> None:
    """Leave this machine's tree for one that has only what the program may see.

    Everything is opened in the old tree, since the new one hides it, and mounted from its descriptor; what is inside comes with it,
    because the kernel lets no user take a folder apart from what is mounted in it.
    """
    mount("none", "/", "", MS_PRIVATE_REC)
    read_only("/", recursive=True)  # and so all that is mounted from it
    links = {name: os.readlink(f"/{name}") for name in PROGRAMS if os.path.islink(f"/{name}")}
    seen = [f"/{name}" for name in PROGRAMS if name not in links and os.path.isdir(f"/{name}")]
    seen += [*sorted(places, key=len), folder]  # what holds others before them, and last what is to be writable
    seen += [f"/dev/{name}" for name in DEVICES if os.path.exists(f"/dev/{name}")]
    with contextlib.ExitStack() as opened:
        fds = [(place, os.open(place, os.O_PATH)) for place in ("/proc", *seen)]
        for _, fd in fds:
            opened.callback(os.close, fd)
        mount("tmpfs", "/dev", "tmpfs", MS_NOSUID, "size=64k,mode=755")
        for name in EMPTY:
            os.makedirs(f"/dev/{name}")
        for name, target in links.items():
            os.symlink(target, f"/dev/{name}")
        mount("/proc", "/dev/proc", "", MS_BIND | MS_REC)  # by which descriptors are named
        os.chdir("/dev")
        pivot_root()
        for place, fd in fds[1:]:
            mount(f"/proc/self/fd/{fd}", _made(place, fd), "", MS_BIND | MS_REC)
    leave_old_root()
    read_only(os.path.realpath(folder), recursive=False, on=False)
    os.symlink("/proc/self/fd", "/dev/fd")
    os.mkdir("/dev/shm", 0o1777)
    try:  # the guest's memory, in large pages where this machine's kernel has them
        mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "size=100%,huge=within_size")
    except OSError:
        mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "size=100%")
    read_only("/", recursive=False)


def _made(place: str, fd: int) -> str:
    """Where to mount what is open: a folder or file of its path, which may lead through links of what is mounted already."""
    target = os.path.realpath(place)
    if os.path.isdir(f"/proc/self/fd/{fd}"):
        os.makedirs(target, exist_ok=True)
    elif not os.path.exists(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))
    return target


def enter(folder: str, places: Sequence[str]) -> bool:
    """Make the cage around this process and its children; False where the kernel does not allow it, perhaps half made."""
    try:
        _own_namespaces()
        _own_mounts(folder, places)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"cage: {where}{error.strerror}", file=sys.stderr, flush=True)
        return False
    return True


def main(arguments: list[str]) -> int:
    end = arguments.index("--")
    (cpu, folder, *places), program = arguments[:end], arguments[end + 1 :]
    # Python takes its time to start, and who started it may have been killed meanwhile
    starter = os.environ.pop(STARTER, None)
    die_with_parent(None if starter is None else int(starter))
    os.sched_setaffinity(0, {int(cpu)})
    libc.personality(ADDR_NO_RANDOMIZE)  # guests before 7.2 size their memory by where the host put them
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        die_with_parent()
        os.close(reading)
        if enter(folder, places):
            os.write(writing, b"entered")
            os.close(writing)
            os._exit(_caged(program))
        os._exit(EXIT_NO_CAGE)
    os.close(writing)
    if os.read(reading, 16):
        return _exit_code(child)
    os.waitpid(child, 0)
    if os.environ.get("WARPBED_CAGE") == "required":
        remedy = "let this machine make user namespaces (docs/image.md), or unset it for a run without a cage"
        print(f"WARPBED_CAGE=required: nothing was started; {remedy}", file=sys.stderr, flush=True)
        return EXIT_NO_CAGE
    # the child has left; this process is where it was
    os.environ["TMPDIR"] = memory_place()
    _drop_capabilities()
    return _exit_code(_start(program))


def _caged(program: list[str]) -> int:
    """Start the program as a child of the namespace's first process; its exit code."""
    child = os.fork()
    if child == 0:
        die_with_parent()
        with contextlib.suppress(OSError):  # in a container that hides parts of /proc; the guest needs none of them
            mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV)
            read_only("/proc", recursive=False)
        _drop_capabilities()
        os._exit(_exit_code(_start(program)))
    return _exit_code(child)


def _drop_capabilities() -> None:
    drop_capabilities(keep=(CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH) if os.getuid() == 0 else ())


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
