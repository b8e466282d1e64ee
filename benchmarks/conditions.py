# SPDX-License-Identifier: Apache-2.0
"""Conditions under which a run of the virtual host must give the same bytes, each as something that executes it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from unittest import mock

from agent import plain_code
from base.paths import ROOT, SENT_PACKAGES
from hosts.base import Execution, Outcome
from hosts.virtual import boot, launch
from hosts.virtual.launch import GuestKernel
from hosts.virtual.stall import descendants

STOP_EVERY_S = 0.005
TAKE_EVERY_S = 0.02
SYS_PROCESS_MADVISE, MADV_PAGEOUT = 440, 21
"""Linux' own numbers, the same for every architecture."""
BURNERS = 3
OTHER_BOOT = ("spawn=12", "draw=7", "sleep=137", "spin=12000", "touch=24", "files=150")
ASLR = "ASLR of the host"
LONG = "a-folder-with-a-long-name-" * 4
PERSONALITY = """\
import ctypes, os, sys
ctypes.CDLL(None).personality(0)
os.execv(sys.argv[1], sys.argv[1:])
"""
CONTAINED = """\
hostname container && echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin "$@"
"""


@dataclass(frozen=True)
class Condition:
    """A name for people, and what executes a run so."""

    name: str
    execute: Callable[[GuestKernel, Execution], Outcome]


def _busy(kernel: GuestKernel, run: Execution) -> Outcome:
    """Others want the same CPU."""
    line = ["taskset", "-c", str(run.cpu), sys.executable, "-c", "while True: pass"]
    burners = [subprocess.Popen(line) for _ in range(BURNERS)]
    try:
        return launch.execute(kernel, run)
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


@contextlib.contextmanager
def _beside(work: Callable[[str, threading.Event, list[int]], None], run: Execution, done: list[int]) -> Iterator[None]:
    """Something that happens to a run's guest in a thread of its own, and notes what it did."""
    ended = threading.Event()
    thread = threading.Thread(target=work, args=(str(run.folder), ended, done))
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _interrupted(kernel: GuestKernel, run: Execution) -> Outcome:
    """The guest is stopped and goes on every few milliseconds, its boot included.

    Before 6.16 its kernel traces its processes (ptrace), copies of itself, and takes their stops for its own: the run would fail.
    So they are not stopped, and wait for the kernel, which is.
    """
    stopped = list[int]()
    with _beside(_interrupt, run, stopped):
        outcome = launch.execute(kernel, run)
    if not stopped:
        raise RuntimeError("the guest was never stopped")
    return outcome


def _interrupt(folder: str, ended: threading.Event, stopped: list[int]) -> None:
    while not ended.wait(STOP_EVERY_S):
        guests = [pid for pid in descendants(os.getpid()) if folder in _command_line(pid) and not _is_copy(pid)]
        for pid in guests:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
                stopped.append(pid)
        time.sleep(STOP_EVERY_S)
        for pid in guests:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def _pressed(kernel: GuestKernel, run: Execution) -> Outcome:
    """The guest's pages are taken from it every few milliseconds, as a machine without free memory does.

    Its kernel is a copy: pages that others have mapped too stay where they are.
    """
    own = run.folder / LONG
    own.mkdir()
    kernel = replace(kernel, linux=Path(shutil.copy2(kernel.linux, own)))
    taken = list[int]()
    with _beside(_take, run, taken):
        outcome = launch.execute(kernel, run)
    if not sum(taken):
        raise RuntimeError(
            "nothing of the guest's memory was taken; it needs root or CAP_SYS_NICE, and Linux 5.10 or newer"
        )
    return outcome


def _take(folder: str, ended: threading.Event, taken: list[int]) -> None:
    while not ended.wait(TAKE_EVERY_S):
        for pid in [pid for pid in descendants(os.getpid()) if folder in _command_line(pid)]:
            with contextlib.suppress(OSError):
                taken.append(_page_out(pid))


def _page_out(pid: int) -> int:
    """Have the kernel take a process' pages back to where they came from: files, and swap where there is any. Bytes asked of it."""
    libc, asked = ctypes.CDLL(None), 0
    handle = os.pidfd_open(pid)
    try:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            first, last = (int(text, 16) for text in line.split()[0].split("-"))
            where = (ctypes.c_size_t * 2)(first, last - first)  # struct iovec
            asked += max(0, libc.syscall(SYS_PROCESS_MADVISE, handle, where, ctypes.c_size_t(1), MADV_PAGEOUT, 0))
    finally:
        os.close(handle)
    return asked


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _is_copy(pid: int) -> bool:
    """Whether the process has the command line of the one that it comes from, or is gone."""
    try:
        parent = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return True
    return _command_line(parent) == _command_line(pid)


def _changed(change: Callable[[list[str]], list[str]]) -> Callable[[GuestKernel, Execution], Outcome]:
    """Execute with another command line of the guest's kernel."""

    def execute(kernel: GuestKernel, run: Execution) -> Outcome:
        def command(kernel: GuestKernel, run: Execution) -> list[str]:
            return change(plain(kernel, run))

        plain = launch.command
        with mock.patch.object(launch, "command", command):
            return launch.execute(kernel, run)

    return execute


def _randomized(line: list[str]) -> list[str]:
    """The host places the guest's kernel in memory at random, where that kernel lets it."""
    end = line.index("--") + 1
    cage, guest = line[:end], line[end:]
    return [*cage, boot.SYSTEM_PYTHON, "-I", "-c", PERSONALITY, *guest]


def _contained(kernel: GuestKernel, run: Execution) -> Outcome:
    """Namespaces of its own, for users, too, in which no cage can be made: as containers are that may do nothing."""
    own = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "--net",
        "--uts",
        "--ipc",
        "/bin/sh",
        "-c",
        CONTAINED,
        "sh",
    ]
    outcome = _changed(lambda line: [*own, *line])(kernel, run)
    if b"cage: " not in (run.folder / "console.log").read_bytes():
        raise RuntimeError("the guest had a cage")
    return outcome


def _as_nobody(line: list[str]) -> list[str]:
    """Another user and group for all that starts the guest; files are this user's."""
    return ["unshare", "--user", "--map-user=65534", "--map-group=65534", *line]


def _other_boot(line: list[str]) -> list[str]:
    """More happens before the run, and the first process has more in its environment."""
    at = next(i for i, word in enumerate(line) if word.endswith("agent/init.py"))
    before = [*line[: line.index("--")], f"PADDING={'x' * 900}", "LC_ALL=C", *line[line.index("--") : at]]
    return [*before, f"{line[at].removesuffix('agent/init.py')}benchmarks/other_boot.py", *OTHER_BOOT]


def _own_code(line: list[str]) -> list[str]:
    """glibc in the guest chooses its code by what this CPU has, instead of what every x86-64 has.

    The features that it is to do without become names that mean nothing, of the same length.
    """
    return [word.replace(plain_code.VALUE, plain_code.VALUE.replace("-", "_")) for word in line]


def _elsewhere(kernel: GuestKernel, run: Execution) -> Outcome:
    """Another checkout, without compiled files, and results in a folder with a long name."""
    place = run.folder / LONG
    copy, out = place / "checkout", place / "out"
    for package in (*SENT_PACKAGES, "topologies"):
        shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__"))
    out.mkdir()
    with mock.patch.object(launch, "ROOT", copy), mock.patch.object(boot, "ROOT", copy):
        outcome = launch.execute(kernel, replace(run, folder=out))
    for file in out.iterdir():
        file.rename(run.folder / file.name)
    return outcome


CONDITIONS = (
    Condition("plain", launch.execute),
    Condition("busy CPU", _busy),
    Condition("SIGSTOP and SIGCONT", _interrupted),
    Condition("memory pressure", _pressed),
    Condition(ASLR, _changed(_randomized)),
    Condition("in a container", _contained),
    Condition("another user", _changed(_as_nobody)),
    Condition("another boot", _changed(_other_boot)),
    Condition("another CPU's code", _changed(_own_code)),
    Condition("another folder", _elsewhere),
)


def those_of(kernel: GuestKernel) -> dict[str, Condition]:
    """Name → condition, of those that runs by this kernel meet.

    Before 6.16 a guest's memory depends on where the host puts its kernel, and its packets with it; the cage has it put where it always is.
    """
    return {each.name: each for each in CONDITIONS if kernel.has_seccomp or each.name != ASLR}
