# SPDX-License-Identifier: Apache-2.0
"""What of a host decides the packets of a run: the kernel, the modules that the plan loads, no others, and its programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from base.cache import digest
from plan.model import Plan


@dataclass(frozen=True)
class KernelInputs:
    """The part of a run's inputs that its host's kernel is.

    kernel: identifies source, patches, configuration and compiler
    modules: name of each module that the plan loads → srcversion, which covers its sources and the headers beside them
    userland: package → version of the programs that run in the guest; agent: identifies the project's own. These two are
        recorded and compared, and are no part of a run's id
    """

    kernel: str
    modules: Mapping[str, str]
    userland: Mapping[str, str] = field(default_factory=dict)
    agent: str = ""

    @property
    def key(self) -> str:
        return digest([self.kernel, dict(self.modules)])[:20]


def bpf_versions(plan: Plan) -> dict[str, str]:
    """Name and SHA-256 of the BPF objects that the plan registers: they decide packets as modules do."""
    return {one.cca: one.sha256 for one in plan.bpf}


def kernel_inputs(facts: Mapping[str, Any], plan: Plan, image: str = "") -> KernelInputs:
    """The inputs from a build's description (build.json).

    image: what else identifies the system that boots the kernel
    """
    versions = {module["name"]: str(module["srcversion"]) for module in facts.get("modules", ())}
    names = sorted({PurePath(module.path).stem for module in plan.modules})
    # a module that the build lacks has no version here; the host refuses the plan before it starts anything
    whole = facts["kernel_key"] if "kernel_key" in facts else facts["key"]  # a build of somebody's own may have one key
    kernel = "-".join(part for part in (str(whole), image) if part)
    return KernelInputs(kernel, {name: versions.get(name, "") for name in names} | bpf_versions(plan))
