# SPDX-License-Identifier: Apache-2.0
"""Algorithms that are BPF programs, on hosts that send the agent what it needs, and which kernels can have them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from plan.console import MODULES
from plan.model import Plan

OPTIONS = ("CONFIG_BPF_SYSCALL", "CONFIG_BPF_JIT", "CONFIG_DEBUG_INFO_BTF")
"""struct_ops needs all three: programs in the machine's own code, and a kernel that describes its structures."""


def _place(cca: str) -> str:
    return f"{MODULES}/{cca}.bpf.o"


def files(plan: Plan) -> dict[str, Path | bytes]:
    """What is sent: place over there → file here."""
    return {_place(one.cca): Path(one.path) for one in plan.bpf}


def sent(plan: Plan) -> Plan:
    """The plan whose objects are where they were sent to."""
    return dataclasses.replace(plan, bpf=tuple(dataclasses.replace(one, path=_place(one.cca)) for one in plan.bpf))


def lacking(plan: Plan, config: Mapping[str, str], kernel: str) -> list[str]:
    """Why a kernel with this configuration cannot have the plan's algorithms."""
    missing = [option for option in OPTIONS if config.get(option) != "y"]
    if not plan.bpf or not missing:
        return []
    names = ", ".join(one.cca for one in plan.bpf)
    return [
        (
            f"{names}: {kernel} has no {' and no '.join(missing)}, which BPF congestion controls need; "
            "boot a distribution's own kernel with --host vm (docs/hosts.md#bpf), or run it with --host local or lab"
        )
    ]
