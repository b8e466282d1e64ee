# SPDX-License-Identifier: Apache-2.0
"""The virtual host as one of the kinds of hosts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hosts.base import Outcome
from hosts.identity import KernelInputs, kernel_inputs
from hosts.virtual.launch import GuestKernel, execute
from plan.model import Plan


@dataclass(frozen=True)
class VirtualHost:
    """A User-Mode-Linux guest per run."""

    kernel: GuestKernel
    kind: str = "virtual"
    one_at_a_time: bool = False

    def inputs(self, plan: Plan) -> KernelInputs:
        return kernel_inputs(self.kernel.facts, plan)

    @property
    def facts(self) -> dict[str, Any]:
        return self.kernel.facts

    def problems(self, plan: Plan) -> list[str]:
        return []

    def execute(
        self,
        plan: Plan,
        folder: Path,
        cpu: int,
        seed: int,
        progress: Callable[[float], None],
        cancelled: Callable[[], bool],
    ) -> Outcome:
        return execute(self.kernel, plan, folder, cpu, seed, progress, cancelled)
