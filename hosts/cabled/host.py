# SPDX-License-Identifier: Apache-2.0
"""Execute plans on a set of virtual machines, one per node, whose cables are pairs of sockets between their QEMUs."""

from __future__ import annotations

import contextlib
import dataclasses
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hosts.base import Execution, Outcome, failure
from hosts.nodes import cabling
from hosts.nodes import run as nodes
from hosts.realtime import in_real_time, modules_of
from hosts.remote import RemoteError
from hosts.virtual.console import Console
from hosts.virtual.launch import memory_bytes
from hosts.vm import qemu
from hosts.vm.base import MachineHost
from hosts.vm.builds import find
from hosts.vm.host import MACHINE_MEMORY_MIB, captured_bytes
from hosts.vm.machine import BootError, Machine, Spec, started
from network.model import Network
from plan.model import Plan
from schema.model import Experiment

CABLE_BYTES = 4 << 20
"""What a cable's socket holds: a receiving QEMU that is late must not lose frames."""


@dataclass(frozen=True)
class CabledHost(MachineHost):
    """A machine per node and run, one run at a time."""

    kind: str = "cabled"

    def problems(self, plan: Plan) -> list[str]:
        wrong = [*cabling.problems(plan.network, qemu.MAX_NICS)]
        if plan.bpf:
            wrong.append(f"{plan.bpf[0].cca} is a BPF program, which cabled machines are not given")
        if plan.calibration == "only":
            wrong.append("machines of their own cannot measure single hops together")
        return [f"{problem}; run it with --host vm" for problem in wrong]

    def execute(self, run: Execution) -> Outcome:
        run = run.of(dataclasses.replace(in_real_time(run.plan, modules_of(run.plan)), calibration="off"))
        plan, folder = run.plan, run.folder
        begun = time.monotonic()
        accelerator = qemu.accelerator(self.builds.kernel / "linux")
        facts: dict[str, Any] = {}
        with _cables(plan.network) as ends, started(self._specs(plan, accelerator.name, ends), folder) as machines:
            try:
                _wait_booted(machines, run.cancelled)
                error, facts = nodes.execute(
                    run,
                    cabling.cabling(plan, {interface: nic.mac for interface, nic in ends.items()}),
                    {machine.spec.name: machine.remote for machine in machines},
                    [self.builds.module(Path(module.path).stem) for module in plan.modules],
                )
            except BootError as failed:
                error = failure("boot", "machines", str(failed))
            except RemoteError as failed:
                error = failure("machines", "ssh", str(failed))
            dead = [f"{machine.spec.name}: {machine.words()}" for machine in machines if not machine.is_alive]
        if error is not None and dead:
            error = {**error, "detail": f"{error['detail']}; gone: {'; '.join(dead)}"}
        error = _consoles(machines, folder) or error
        if facts:
            self.keep(folder, facts, accelerator, 1)
            if error is None and (wrong := self.builds.problems(facts["environment"])):
                error = failure("kernel", "machines", "; ".join(wrong))
        done_s = plan.duration_s if facts else 0.0
        return Outcome(error, facts, time.monotonic() - begun, done_s)

    def _specs(self, plan: Plan, accelerator: str, ends: dict[str, qemu.Nic]) -> list[Spec]:
        memory_mib = MACHINE_MEMORY_MIB + ((memory_bytes(plan) + captured_bytes(plan)) >> 20)
        return [
            Spec(
                node.name,
                self.builds.kernel / "linux",
                self.builds.image / "root.ext2",
                memory_mib,
                1,
                accelerator,
                tuple(nic for interface, nic in ends.items() if interface.rpartition("-")[0] == node.name),
            )
            for node in plan.network.nodes
        ]


def open_host(experiment: Experiment) -> CabledHost:
    return CabledHost(find(experiment.kernel))


@contextlib.contextmanager
def _cables(network: Network) -> Iterator[dict[str, qemu.Nic]]:
    """A pair of sockets per link: interface of the plan → the machine's end. They are gone with the processes that hold them."""
    sockets: list[socket.socket] = []
    ends: dict[str, qemu.Nic] = {}
    interfaces: dict[int, list[str]] = {}
    for interface, number in cabling.interface_links(network).items():
        interfaces.setdefault(number, []).append(interface)
    try:
        for number, pair in interfaces.items():
            for side, (interface, end) in enumerate(
                zip(pair, socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM), strict=True)
            ):
                for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                    end.setsockopt(socket.SOL_SOCKET, option, CABLE_BYTES)
                sockets.append(end)
                ends[interface] = qemu.Nic(
                    f"02:01:{number >> 8 & 255:02x}:{number & 255:02x}:00:0{side + 1}", end.fileno()
                )
        yield ends
    finally:
        for end in sockets:
            end.close()


def _wait_booted(machines: list[Machine], cancelled: Callable[[], bool]) -> None:
    def wait(machine: Machine) -> None:
        try:
            machine.wait_booted(cancelled, len(machines))
        except BootError as error:
            raise BootError(f"{machine.spec.name}: {error}") from error

    with ThreadPoolExecutor(len(machines)) as pool:
        list(pool.map(wait, machines))


def _consoles(machines: list[Machine], folder: Path) -> dict[str, str] | None:
    """All consoles in one file, each line with its machine's name; returns a kernel's disaster, if there was one."""
    disaster = None
    with open(folder / "console.log", "w") as out:
        for machine in machines:
            console = Console()
            file = folder / f"{machine.spec.name}.console"
            for line in file.read_text(errors="replace").splitlines():
                console.line(line)
                out.write(f"{machine.spec.name}: {line}\n")
            file.unlink()
            if console.disaster and disaster is None:
                disaster = failure("kernel", machine.spec.name, "\n".join(console.disaster))
    return disaster
