# SPDX-License-Identifier: Apache-2.0
"""Find the topologies of this folder, for the experiment files and for Mininet.

A topology file defines a frozen dataclass `Parameters` and a function `network(parameters) -> Network`, and ends with
`topos = expose(...)`, so that it is known to experiment files by its file name and to `mn --custom`.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import topologies
from topologies.model import Network

MARK = "\ntopos = expose("
"""What the file of a topology has, and no other of this folder."""

_KINDS = {"int": (int, "a whole number"), "str": (str, "a text with a unit, such as 48ms, 50mbit or 250p,")}


@functools.cache
def names() -> list[str]:
    """Names of all topologies, sorted."""
    files = (file for folder in topologies.__path__ for file in Path(folder).glob("*.py"))
    return sorted(file.stem for file in files if MARK in file.read_text())


def load(name: str) -> ModuleType:
    """The module of a topology.

    Raises KeyError where there is none of that name.
    """
    if name not in names():
        raise KeyError(name)
    return importlib.import_module(f"topologies.{name}")


def parameter_names(name: str) -> list[str]:
    return [field.name for field in dataclasses.fields(load(name).Parameters)]


def build(name: str, params: dict[str, Any]) -> Network:
    """The network of a topology with its parameters.

    Raises KeyError for an unknown topology, TypeError for unknown parameters, ValueError for bad values.
    """
    module = load(name)
    kinds = {field.name: str(field.type) for field in dataclasses.fields(module.Parameters)}
    for key, value in params.items():
        wanted = kinds.get(key, "")
        if wanted in _KINDS and not isinstance(value, _KINDS[wanted][0]):
            raise ValueError(f"{key}: {value!r}: {_KINDS[wanted][1]} is needed")
    network: Network = module.network(module.Parameters(**params))
    return network


def expose(name: str, parameters: type, network: Callable[[Any], Network]) -> dict[str, Any]:
    """The dictionary that `mn --custom` looks for; empty where Mininet is not installed."""
    try:
        from topologies.mininet_build import NetworkTopo
    except ImportError:
        return {}

    class Custom(NetworkTopo):
        def network(self, **params: Any) -> Network:
            return network(parameters(**{key: _plain(value) for key, value in params.items()}))

    return {name: Custom}


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, str) and value.isdigit() else value
