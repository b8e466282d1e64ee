# SPDX-License-Identifier: Apache-2.0
"""Enter network namespaces and set what the kernel keeps per namespace, without a process for each."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Iterable, Iterator, Mapping

CLONE_NEWNET = 0x40000000
SIOCETHTOOL = 0x8946
ETHTOOL_SET = {"tx-tcp-segmentation": 0x1F, "tx-generic-segmentation": 0x24, "rx-gro": 0x2C}
"""ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO of linux/ethtool.h."""
ETHTOOL_GET = {"tx-tcp-segmentation": 0x1E, "tx-generic-segmentation": 0x23, "rx-gro": 0x2B}

_libc = ctypes.CDLL(None, use_errno=True)


def _setns(fd: int) -> None:
    if _libc.setns(fd, CLONE_NEWNET):
        error = ctypes.get_errno()
        raise OSError(error, f"setns: {os.strerror(error)}")


@contextlib.contextmanager
def entered(pid: int) -> Iterator[None]:
    """Run the body in the network namespace of a process. Not for programs with several threads in the body."""
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        other = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            _setns(other)
        finally:
            os.close(other)
        try:
            yield
        finally:
            _setns(own)
    finally:
        os.close(own)


def sysctl_path(name: str) -> str:
    """/proc/sys path of a dotted name; a `/` in the name stands for a dot within a part, as sysctl(8) has it."""
    return "/proc/sys/" + name.replace(".", "\0").replace("/", ".").replace("\0", "/")


def write_sysctls(values: Mapping[str, str]) -> None:
    """Write sysctls in the current namespace.

    Raises OSError that names the sysctl and the value.
    """
    for name, value in values.items():
        try:
            with open(sysctl_path(name), "w") as file:
                file.write(value)
        except OSError as error:
            raise OSError(error.errno, f"sysctl {name} = {value}: {error.strerror}") from error


def read_sysctls(names: Iterable[str]) -> dict[str, str | None]:
    """Values of sysctls in the current namespace; None for those that this kernel does not have."""
    values: dict[str, str | None] = {}
    for name in names:
        try:
            with open(sysctl_path(name)) as file:
                values[name] = " ".join(file.read().split())
        except OSError:
            values[name] = None
    return values


def _ethtool(sock: socket.socket, interface: str, command: int, value: int) -> int:
    data = bytearray(struct.pack("=II", command, value))
    buffer = (ctypes.c_char * len(data)).from_buffer(data)
    request = struct.pack("16sP", interface.encode(), ctypes.addressof(buffer))
    fcntl.ioctl(sock, SIOCETHTOOL, request)
    return int(struct.unpack("=II", data)[1])


def disable_offloads(interfaces: Iterable[str]) -> None:
    """Turn segmentation and coalescing off in the current namespace, so that every packet is a packet."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for interface in interfaces:
            for name, command in ETHTOOL_SET.items():
                # a card that cannot do it refuses to be told that it should not
                if _ethtool(sock, interface, ETHTOOL_GET[name], 0):
                    _ethtool(sock, interface, command, 0)


def read_offloads(interfaces: Iterable[str]) -> dict[str, dict[str, bool]]:
    """Segmentation and coalescing offloads of interfaces in the current namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        return {
            interface: {name: bool(_ethtool(sock, interface, command, 0)) for name, command in ETHTOOL_GET.items()}
            for interface in interfaces
        }
