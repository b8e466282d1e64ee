# SPDX-License-Identifier: Apache-2.0
"""What Linux offers and Python's library does not: namespaces, mounts, an end with the parent, a card's offloads."""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import socket
import struct
from collections.abc import Collection
from pathlib import Path

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x20000, 0x10000000, 0x20000000, 0x40000000
CLONE_NEWIPC = 0x08000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_BIND = 1, 2, 4, 0x1000
MS_REC = 0x4000
MS_PRIVATE_REC = MS_REC | 0x40000
MNT_DETACH = 2
REBOOT_POWER_OFF = 0x4321FEDC
SYSLOG_CONSOLE_LEVEL, LOG_ALL = 8, 8
PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_SET_TIMERSLACK, PR_SET_NO_NEW_PRIVS = 1, 24, 29, 38
SIOCETHTOOL = 0x8946
SYS_CAPGET, SYS_CAPSET, SYS_PIVOT_ROOT, SYS_FINIT_MODULE, SYS_MOUNT_SETATTR = 125, 126, 155, 313, 442
"""Of x86-64."""
CAPABILITY_VERSION = 0x20080522
AT_FDCWD, AT_RECURSIVE, MOUNT_ATTR_RDONLY = -100, 0x8000, 1
OFFLOADS = {"tso": (0x1E, 0x1F), "gso": (0x23, 0x24), "gro": (0x2B, 0x2C)}
"""Segmentation and coalescing: ETHTOOL_G…, ETHTOOL_S… of linux/ethtool.h."""

libc = ctypes.CDLL(None, use_errno=True)


def checked(result: int, what: str) -> None:
    """Raise OSError with errno's words where a call of libc has failed."""
    if result:
        error = ctypes.get_errno()
        raise OSError(error, f"{what}: {os.strerror(error)}")


def mount(source: str, target: str, kind: str, flags: int = 0, options: str = "") -> None:
    result = libc.mount(source.encode(), target.encode(), kind.encode(), flags, options.encode())
    checked(result, f"mount {kind} on {target}")


class MountAttributes(ctypes.Structure):
    """struct mount_attr of linux/mount.h."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("attr_set", "attr_clr", "propagation", "userns_fd")]


def read_only(path: str, recursive: bool, on: bool = True) -> None:
    """Make a mount read-only, or writable again; with all below it where `recursive`."""
    attributes = MountAttributes(MOUNT_ATTR_RDONLY if on else 0, 0 if on else MOUNT_ATTR_RDONLY, 0, 0)
    result = libc.syscall(
        SYS_MOUNT_SETATTR,
        AT_FDCWD,
        path.encode(),
        AT_RECURSIVE if recursive else 0,
        ctypes.byref(attributes),
        ctypes.sizeof(attributes),
    )
    checked(result, f"mount_setattr {path}")


def pivot_root() -> None:
    """Make the current folder, a mount, this process's root; the old one is mounted on it until `leave_old_root`."""
    checked(libc.syscall(SYS_PIVOT_ROOT, b".", b"."), "pivot_root")


def leave_old_root() -> None:
    """Take away what `pivot_root` has left, from the same current folder."""
    checked(libc.umount2(b".", MNT_DETACH), "umount of the old root")
    os.chdir("/")


def drop_capabilities(keep: Collection[int] = ()) -> None:
    """Give up the capabilities of this process for good, but those to keep of them: nothing that it executes gets one back."""
    checked(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    for capability in range(64):  # the kernel knows fewer
        if capability not in keep:
            libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    header, sets = struct.pack("=Ii", CAPABILITY_VERSION, 0), ctypes.create_string_buffer(24)
    checked(libc.syscall(SYS_CAPGET, header, sets), "capget")
    # effective, permitted, inheritable, of the first 32 and then of the others
    _, low, _, _, high, _ = struct.unpack("=6I", sets.raw)
    kept = sum(1 << capability for capability in keep) & (low | high << 32)
    sets.raw = struct.pack("=6I", *[kept & 0xFFFFFFFF] * 2, 0, *[kept >> 32] * 2, 0)
    checked(libc.syscall(SYS_CAPSET, header, sets), "capset")


def unshare(flags: int) -> None:
    """Go into new namespaces."""
    checked(libc.unshare(flags), "unshare")


def setns(fd: int, kind: int) -> None:
    """Go into a namespace that is there."""
    checked(libc.setns(fd, kind), "setns")


def insert_module(file: Path, parameters: str = "") -> None:
    """Insert a kernel module without insmod."""
    with file.open("rb") as content:
        checked(libc.syscall(SYS_FINIT_MODULE, content.fileno(), parameters.encode(), 0), f"insert {file.name}")


def die_with_parent(parent: int | None = None) -> None:
    """Ask the kernel to kill this process when the thread that started it ends; also as `preexec_fn` of subprocess.

    parent: the process that started it, told by itself, where this one may have lost it before it could look
    """
    parent = os.getppid() if parent is None else parent
    checked(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")
    if os.getppid() != parent:  # it ended before it was asked for
        os.kill(os.getpid(), signal.SIGKILL)


def exact_timers() -> None:
    """Let this process's sleeps end when they are due; by default the kernel may add 50 µs."""
    libc.prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)


def log_everything() -> None:
    """From here on all that the kernel says goes to the console: of a panic, the function it happened in is but "info"."""
    libc.klogctl(SYSLOG_CONSOLE_LEVEL, None, LOG_ALL)


def power_off() -> None:
    """End the machine whose first process this is."""
    os.sync()
    libc.reboot(REBOOT_POWER_OFF)


def offload(interface: str, name: str, value: int | None = None) -> int:
    """Read, or with a value set, one of OFFLOADS of an interface of the current namespace."""
    get, put = OFFLOADS[name]
    data = bytearray(struct.pack("=II", get if value is None else put, value or 0))
    buffer = (ctypes.c_char * len(data)).from_buffer(data)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, SIOCETHTOOL, struct.pack("16sP", interface.encode(), ctypes.addressof(buffer)))
    return int(struct.unpack("=II", data)[1])
