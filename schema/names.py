# SPDX-License-Identifier: Apache-2.0
"""Names that experiment files may use."""

from __future__ import annotations

import json
from pathlib import Path

from base.paths import ROOT
from kernels import bpf_objects, module_source

HOST_KINDS = ROOT / "hosts/kinds.json"

IN_TREE_CCAS = (
    "bbr",
    "bic",
    "cdg",
    "cubic",
    "dctcp",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "lp",
    "nv",
    "reno",
    "scalable",
    "vegas",
    "veno",
    "westwood",
    "yeah",
)
"""Congestion control algorithms of the kernel itself; `westwood` is what papers call Westwood+."""


def project_ccas() -> dict[str, Path]:
    """The algorithms of kernels/modules: name → source file."""
    return {name: module.source for name, module in module_source.by_name().items()}


def bpf_ccas() -> dict[str, Path]:
    """The algorithms of kernels/bpf: name → source file. They need a kernel with BPF, which the virtual host's is not."""
    return bpf_objects.own()


def algorithms() -> list[str]:
    return sorted({*IN_TREE_CCAS, *project_ccas()})


def host_kinds() -> dict[str, dict[str, str]]:
    """The kinds of hosts: name → its fields (hosts.registry.Kind), for Python and the playbooks alike."""
    kinds: dict[str, dict[str, str]] = json.loads(HOST_KINDS.read_text())
    return kinds
