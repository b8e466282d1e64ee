# SPDX-License-Identifier: Apache-2.0
"""Captures and samples that the virtual host's kernel takes by itself (kernels/modules/um_tap.c, um_sample.c, um_probe.c).

A process that wakes for a sample or copies packets costs a guest many times what it records. The files are those of tcpdump, of
agent.samples and of agent.tcp_probe.
"""

from __future__ import annotations

import os
from pathlib import Path

from agent.capture import WHOLE_PACKET
from agent.errors import RunError
from agent.namespaces import entered
from agent.tcp_probe import EVENTS, FORMAT
from base.linux import insert_module
from plan.console import MODULES

TAP, SAMPLE, PROBE = "um_tap", "um_sample", "um_probe"


def load() -> None:
    """Insert the modules, without a process that would draw random numbers.

    Raises RunError where the kernel's build lacks one.
    """
    for name in (TAP, SAMPLE, PROBE):
        try:
            insert_module(Path(MODULES, f"{name}.ko"))
        except OSError as error:
            raise RunError("module", name, f"{error.strerror}; virtual.recorded_by: programs does without") from error


class KernelCapture:
    """An open capture: the methods are those of agent.capture.TcpdumpCapture.

    host_folder: the run's folder as the machine below the guest calls it
    """

    def __init__(self, pid: int, interface: str, snap_bytes: int, host_folder: str, packets_at_most: int = 0) -> None:
        self.interface, self._packets_at_most = interface, packets_at_most
        self._path, self._open = f"{host_folder}/{interface}.pcap", False
        with entered(pid):
            _tell(TAP, "open", f"{interface} {snap_bytes or WHOLE_PACKET} {packets_at_most} {self._path}")
        self._open = True

    def check_running(self) -> None:
        """What goes wrong is known at the end: a packet is either in the file or an error of its disk."""

    def is_full(self) -> bool:
        """Whether the capture holds as many packets as it may."""
        return bool(self._packets_at_most) and self._packets() >= self._packets_at_most

    def _packets(self) -> int:
        for line in Path(f"/sys/module/{TAP}/parameters/taps").read_text().splitlines():
            packets, _, path = line.partition(" ")
            if path == self._path:
                return int(packets)
        return 0

    def stop(self) -> int:
        """End the capture and return how many packets are missing: none."""
        self._open = False
        _tell(TAP, "close", self._path)
        return 0

    def kill(self) -> None:
        if self._open:
            self.stop()


class KernelSampler:
    """What agent.samples.Sampler does, by a thread of the kernel: `start` says when."""

    def __init__(self, path: str, protocol: int, question: bytes) -> None:
        self._path, self._open = path, True
        _tell(SAMPLE, "open", f"{protocol} {question.hex()} {path}")

    def add(self, node_index: int) -> None:
        """Sample the namespace that the thread is in right now."""
        _tell(SAMPLE, "add", f"{node_index} {self._path}")

    def start(self, first_s: float, interval_s: float, until_s: float) -> None:
        """Sample at first_s (CLOCK_MONOTONIC), then every interval_s up to until_s."""
        first_ns, interval_ns = round(first_s * 1e9), round(interval_s * 1e9)
        count = (round(until_s * 1e9) - first_ns) // interval_ns + 1
        _tell(SAMPLE, "start", f"{first_ns} {interval_ns} {count} {self._path}")

    def close(self) -> None:
        if self._open:
            self._open = False
            _tell(SAMPLE, "close", self._path)


class KernelProbe:
    """What agent.tcp_probe.TcpProbe records, without a process that fetches pages.

    host_folder: the run's folder as the machine below the guest calls it; out_dir: the same folder here
    """

    def __init__(self, out_dir: Path, host_folder: str, first_port: int, last_port: int) -> None:
        self._path, self._open = f"{host_folder}/{EVENTS}", True
        (out_dir / FORMAT).write_text(Path(f"/sys/module/{PROBE}/parameters/format").read_text())
        _tell(PROBE, "open", f"{first_port} {last_port} {self._path}")

    def close(self) -> int:
        """End the record and return how many events are missing: none."""
        if self._open:
            self._open = False
            _tell(PROBE, "close", self._path)
        return 0


def _tell(module: str, parameter: str, value: str) -> None:
    """Write a parameter; unbuffered, since the kernel takes each write for a whole order."""
    try:
        with open(f"/sys/module/{module}/parameters/{parameter}", "wb", buffering=0) as file:
            file.write(os.fsencode(value))
    except OSError as error:
        raise RunError("record", value.rpartition("/")[2], f"{module} {parameter}: {error.strerror}") from error
