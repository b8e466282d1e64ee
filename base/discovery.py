# SPDX-License-Identifier: Apache-2.0
"""The modules of a folder in which each file is one plug-in: a file that is there takes part, no list names it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any


def modules_of(package: ModuleType) -> Iterator[ModuleType]:
    """Every module of a package, in the order of their names."""
    for info in sorted(pkgutil.iter_modules(package.__path__), key=lambda info: info.name):
        yield importlib.import_module(f"{package.__name__}.{info.name}")


def merged(package: ModuleType, name: str) -> dict[Any, Any]:
    """The dictionaries of that name of all modules of a package, as one; no key may be in two of them."""
    entries: dict[Any, Any] = {}
    for module in modules_of(package):
        part = getattr(module, name, None)
        if part is None:
            raise TypeError(f"{module.__file__}: does not define {name}, which every file of its folder does")
        if twice := entries.keys() & part.keys():
            raise TypeError(
                f"{module.__file__}: {name}: another file of the folder has {sorted(map(str, twice))} already"
            )
        entries.update(part)
    return entries
