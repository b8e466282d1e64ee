# SPDX-License-Identifier: Apache-2.0
"""Compiled modules, kept by all that decides them: a build compiles the modules that no earlier one has compiled as they are.

`kernels/modules/<key>/` in the cache holds one module's file. Nothing of the other modules is in it, since no module has a symbol of
another's (`test_module_objects` compares the bytes).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path, PurePath

from base.cache import aside, digest, used
from kernels.build_key import Inputs

SOURCES = ("tcp_", "warp_", "um_")
"""How a source is named that Kbuild makes a module of; every other one may be part of each module."""


def key(inputs: Inputs, name: str) -> str:
    """Identifies a compiled module by the kernel that it is for, its own source, and all that is no other module's."""
    read = {
        file: sha256 for file, sha256 in inputs.module_sources.items() if not is_module(file) or file == f"{name}.c"
    }
    return digest([inputs.kernel_key, inputs.arch, name, read])[:20]


def is_module(file: str) -> bool:
    return file.endswith(".c") and "/" not in file and file.startswith(SOURCES)


def restore(inputs: Inputs, cache: Path, modules: Path) -> set[str]:
    """Put the modules that are kept into a folder; returns the sources that need not be compiled."""
    kept = set()
    for file in filter(is_module, inputs.module_sources):
        name = PurePath(file).stem
        entry = cache / "kernels/modules" / key(inputs, name)
        try:
            os.link(entry / f"{name}.ko", modules / f"{name}.ko")
        except FileNotFoundError:
            continue
        used(entry)
        kept.add(file)
    return kept


def keep(inputs: Inputs, cache: Path, modules: Iterable[Path]) -> None:
    """Keep modules that were compiled."""
    for module in modules:
        with aside(cache / "kernels/modules" / key(inputs, module.stem), marker=module.name) as place:
            if place:
                os.link(module, place[0] / module.name)
