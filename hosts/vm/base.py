# SPDX-License-Identifier: Apache-2.0
"""Shared by both forms of virtual machines: the builds that they boot, and their record in a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hosts import bpf
from hosts.identity import KernelInputs, kernel_inputs
from hosts.vm import qemu
from hosts.vm.builds import Builds
from hosts.watch import keep_facts
from plan.model import Plan


@dataclass(frozen=True)
class MachineHost:
    """A host whose machines boot `builds`, one run at a time."""

    builds: Builds
    kind: str = "vm"
    one_at_a_time: bool = True

    def inputs(self, plan: Plan) -> KernelInputs:
        return kernel_inputs(self.builds.kernel_facts, plan, image=str(self.builds.image_facts["key"]))

    def bpf_problems(self, plan: Plan) -> list[str]:
        kernel = f"the kernel {self.builds.kernel_facts['kernel_release']}"
        return bpf.lacking(plan, self.builds.config, kernel) if plan.bpf else []

    @property
    def facts(self) -> dict[str, Any]:
        return {**self.builds.kernel_facts, "image": self.builds.image_facts, "qemu": qemu.version()}

    def keep(self, folder: Path, facts: dict[str, Any], accelerator: qemu.Accelerator, cpus: int) -> None:
        """Write down with the run's facts what executed it."""
        keep_facts(folder, facts, kind=self.kind, accelerator=accelerator.name, reason=accelerator.reason, cpus=cpus)
