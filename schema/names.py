# SPDX-License-Identifier: Apache-2.0
"""Names that experiment files may use."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path

from base.paths import ROOT

MODULES = ROOT / "kernels/modules"
_ALIAS = re.compile(r'MODULE_ALIAS\("tcp_(\w+)"\)')
_PARAMETER = re.compile(r"module_param(?:_cb|_named)?\((\w+),")
_INCLUDE = re.compile(r'^#include "(cc_\w+\.h)"', re.MULTILINE)

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


@dataclass(frozen=True)
class CcaModule:
    """A module of kernels/modules: its source, the algorithms that it registers, and its parameters."""

    source: Path
    names: tuple[str, ...]
    params: tuple[str, ...]

    @property
    def stem(self) -> str:
        return self.source.stem.removeprefix("tcp_")


@functools.lru_cache(maxsize=256)
def _module(source: Path, changed_ns: int) -> CcaModule:
    text = source.read_text(errors="replace")
    whole = text + "".join((source.parent / header).read_text() for header in _INCLUDE.findall(text))
    registered = dict.fromkeys([source.stem.removeprefix("tcp_"), *_ALIAS.findall(text)])
    return CcaModule(source, tuple(registered), tuple(dict.fromkeys(_PARAMETER.findall(whole))))


def cca_modules() -> dict[str, CcaModule]:
    """The algorithms of kernels/modules: name → module; one that registers further names has an alias for each."""
    modules = [_module(path, path.stat().st_mtime_ns) for path in sorted(MODULES.glob("tcp_*.c"))]
    return {name: module for module in modules for name in module.names}


def project_ccas() -> dict[str, Path]:
    """The algorithms of kernels/modules: name → source file."""
    return {name: module.source for name, module in cca_modules().items()}


def algorithms() -> list[str]:
    return sorted({*IN_TREE_CCAS, *project_ccas()})
