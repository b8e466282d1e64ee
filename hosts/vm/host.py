# SPDX-License-Identifier: Apache-2.0
"""Execute plans in one virtual machine that runs the whole Mininet network, in real time or by a clock that counts instructions."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hosts import bpf
from hosts.base import Execution, Outcome, failure
from hosts.identity import KernelInputs, kernel_inputs
from hosts.realtime import in_real_time, modules_of
from hosts.remote import RemoteError, agent_command, agent_files
from hosts.virtual.console import Console
from hosts.virtual.launch import memory_bytes
from hosts.vm import counted, qemu
from hosts.vm.base import MachineHost
from hosts.vm.builds import find
from hosts.vm.machine import BootError, Machine, Spec, started
from hosts.watch import error_of, facts_of, follow
from plan.console import OUT
from plan.model import Plan
from schema.model import Experiment

MACHINE_MEMORY_MIB = 256
"""What the machine's own system and its temporary files take, besides the plan's packets."""
CAPTURED_BYTES_PER_BIT = 0.03
"""Captures and samples lie in the machine's memory: about 110 bytes at both ends for each packet of 1500 bytes."""


@dataclass(frozen=True)
class VmHost(MachineHost):
    """A machine per run: one run at a time where its clock is real, any number side by side where it counts."""

    clock: str = "real"

    def problems(self, plan: Plan) -> list[str]:
        return self.bpf_problems(plan)

    @property
    def facts(self) -> dict[str, Any]:
        return {**super().facts, "clock": self.clock}

    def inputs(self, plan: Plan) -> KernelInputs:
        if self.clock == "counted":
            return kernel_inputs(self.builds.kernel_facts, plan, image=counted.identity())
        return super().inputs(plan)

    def execute(self, run: Execution) -> Outcome:
        if self.clock == "counted":
            return counted.execute(self.builds, run, captured_bytes(run.plan))
        objects, run = bpf.files(run.plan), run.of(bpf.sent(in_real_time(run.plan, modules_of(run.plan))))
        plan, folder = run.plan, run.folder
        begun = time.monotonic()
        accelerator = qemu.accelerator(self.builds.kernel / "linux")
        cpus = min(2, len(os.sched_getaffinity(0))) if accelerator.name == "kvm" else 1
        spec = Spec(
            "machine",
            self.builds.kernel / "linux",
            self.builds.image / "root.ext2",
            MACHINE_MEMORY_MIB + ((memory_bytes(plan) + captured_bytes(plan)) >> 20),
            cpus,
            accelerator.name,
        )
        console = Console()
        with started([spec], folder) as (machine,):
            try:
                machine.wait_booted(run.cancelled)
                error = self._run(machine, run, objects, console)
            except BootError as failed:
                error = failure("boot", "vm", str(failed))
            except RemoteError as failed:
                message = str(failed) if machine.is_alive else f"{failed}; the machine has gone: {machine.words()}"
                error = failure("vm", "ssh", message)
        (folder / "machine.console").rename(folder / "console.log")
        for line in (folder / "console.log").read_text(errors="replace").splitlines():
            console.line(line)
        facts = facts_of(folder)
        if facts:
            self.keep(folder, facts, accelerator, cpus)
        if console.disaster:
            error = failure("kernel", "vm", "\n".join(console.disaster))
        elif error is None and (wrong := self.builds.problems(facts.get("environment", {}))):
            error = failure("kernel", "vm", "; ".join(wrong))
        return Outcome(error, facts, time.monotonic() - begun, console.virtual_s)

    def _run(
        self, machine: Machine, run: Execution, objects: dict[str, Path | bytes], console: Console
    ) -> dict[str, str] | None:
        """Execute the plan in a machine that is up and fetch what it leaves; returns why there is no result."""
        remote, folder = machine.remote, run.folder
        modules = [self.builds.module(Path(module.path).stem) for module in run.plan.modules]
        remote.put({**agent_files(modules), **objects, f"{OUT}/plan.json": folder / "plan.json"})
        with open(folder / "agent.log", "wb") as log:
            process = remote.start(*agent_command(OUT))
            try:
                stopped = follow(process, console, log, run)
            finally:
                assert process.stdin is not None
                process.stdin.close()
                process.kill()
                code = process.wait()
        if run.cancelled():
            return stopped
        remote.get(OUT, folder)
        return stopped or error_of(console, facts_of(folder), code, folder / "agent.log")


def captured_bytes(plan: Plan) -> int:
    """Room for captures and samples of all flows at the network's highest rate."""
    rates = [d.rate_bps for link in plan.network.links for d in (link.forward, link.backward) if d.rate_bps]
    return int(CAPTURED_BYTES_PER_BIT * min(rates, default=10**9) * plan.duration_s) if plan.captures else 0


def open_host(experiment: Experiment) -> VmHost:
    builds = find(experiment.kernel)
    clock = counted.clock(qemu.accelerator(builds.kernel / "linux"))
    if clock == "counted":
        counted.root()  # made now, or else runs side by side would wait for it
    return VmHost(builds, one_at_a_time=clock == "real", clock=clock)
