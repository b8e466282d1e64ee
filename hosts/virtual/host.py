# SPDX-License-Identifier: Apache-2.0
"""The virtual host as one of the kinds of hosts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from base.errors import WarpbedError
from hosts.base import Execution, Outcome
from hosts.identity import KernelInputs, kernel_inputs
from hosts.virtual import pinned
from hosts.virtual.kernel import find
from hosts.virtual.launch import GuestKernel, execute
from hosts.virtual.userland import agent_digest, userland
from plan.model import Plan
from schema.model import Experiment


@dataclass(frozen=True)
class VirtualHost:
    """A User-Mode-Linux guest per run."""

    kernel: GuestKernel
    kind: str = "virtual"
    one_at_a_time: bool = False

    def inputs(self, plan: Plan) -> KernelInputs:
        return replace(kernel_inputs(self.kernel.facts, plan), userland=userland(), agent=agent_digest())

    @property
    def facts(self) -> dict[str, Any]:
        return self.kernel.facts

    def problems(self, plan: Plan) -> list[str]:
        return []

    def execute(self, run: Execution) -> Outcome:
        if run.folder.resolve().is_relative_to("/dev"):
            raise WarpbedError(f"{run.folder}: a guest has a /dev of its own; use --results with a folder elsewhere")
        return execute(self.kernel, run)


def open_host(experiment: Experiment) -> VirtualHost:
    pinned.root()  # which has to be there
    return VirtualHost(find(experiment.kernel))
