# SPDX-License-Identifier: Apache-2.0
"""Enter network namespaces and set what the kernel keeps per namespace, without a process for each."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping

from base.linux import CLONE_NEWNET, offload, setns

OFFLOADS = {"tx-tcp-segmentation": "tso", "tx-generic-segmentation": "gso", "rx-gro": "gro"}
"""As facts name them → as base.linux does."""


@contextlib.contextmanager
def entered(pid: int) -> Iterator[None]:
    """Run the body in the network namespace of a process. Not for programs with several threads in the body."""
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        other = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            setns(other, CLONE_NEWNET)
        finally:
            os.close(other)
        try:
            yield
        finally:
            setns(own, CLONE_NEWNET)
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


def disable_offloads(interfaces: Iterable[str]) -> None:
    """Turn segmentation and coalescing off in the current namespace, so that every packet is a packet."""
    for interface in interfaces:
        for name in OFFLOADS.values():
            # a card that cannot do it refuses to be told that it should not
            if offload(interface, name):
                offload(interface, name, 0)


def read_offloads(interfaces: Iterable[str]) -> dict[str, dict[str, bool]]:
    """Segmentation and coalescing offloads of interfaces in the current namespace."""
    return {
        interface: {word: bool(offload(interface, name)) for word, name in OFFLOADS.items()} for interface in interfaces
    }
