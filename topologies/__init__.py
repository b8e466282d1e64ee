# SPDX-License-Identifier: Apache-2.0
"""Mininet topologies, one per file, and how the program finds them.

A topology file defines a frozen dataclass `Parameters` and a function `network(parameters) -> Network`, and ends with
`topos = expose(...)`, so that it is known to experiment files by its file name and to `mn --custom`.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

from base.errors import ParameterError, UsageError
from network.model import Network

PARTS = ("Parameters", "network", "topos")
"""What each file of this folder defines."""

_KINDS = {"int": (int, "a whole number"), "str": (str, "a text with a unit, such as 48ms, 50mbit or 250p,")}


@functools.cache
def names() -> list[str]:
    """Names of all topologies, sorted: every Python file of this folder is one."""
    files = (file for folder in __path__ for file in Path(folder).glob("*.py"))
    return sorted(file.stem for file in files if file.name != "__init__.py")


def load(name: str) -> ModuleType:
    """The module of a topology.

    Raises KeyError where there is none of that name, UsageError where the file is not a topology.
    """
    if name not in names():
        raise KeyError(name)
    try:
        module = importlib.import_module(f"{__name__}.{name}")
    except (ImportError, SyntaxError) as error:
        raise UsageError(f"topologies/{name}.py: cannot be loaded: {error}") from error
    if missing := [part for part in PARTS if not hasattr(module, part)]:
        raise UsageError(
            f"{module.__file__}: not a topology, it does not define {', '.join(missing)}; "
            "topologies/README.md says what a topology is"
        )
    return module


def parameter_names(name: str) -> list[str]:
    return [field.name for field in dataclasses.fields(load(name).Parameters)]


def build(name: str, params: dict[str, Any]) -> Network:
    """The network of a topology with its parameters.

    Raises KeyError for an unknown topology, TypeError for unknown parameters, ParameterError for bad values.
    """
    module = load(name)
    kinds = {field.name: str(field.type) for field in dataclasses.fields(module.Parameters)}
    for key, value in params.items():
        wanted = kinds.get(key, "")
        if wanted in _KINDS and not isinstance(value, _KINDS[wanted][0]):
            raise ParameterError(key, f"{value!r}: {_KINDS[wanted][1]} is needed")
    network: Network = module.network(module.Parameters(**params))
    return network
