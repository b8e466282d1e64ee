# SPDX-License-Identifier: Apache-2.0
"""Offer a topology to plain Mininet: `mn --custom topologies/NAME.py --topo NAME`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from network.model import Network


def expose(name: str, parameters: type, network: Callable[[Any], Network]) -> dict[str, Any]:
    """The dictionary that `mn --custom` looks for; empty where Mininet is not installed."""
    try:
        from agent.mininet_build import NetworkTopo
    except ImportError:
        return {}

    class Custom(NetworkTopo):
        def network(self, **params: Any) -> Network:
            return network(parameters(**{key: _plain(value) for key, value in params.items()}))

    return {name: Custom}


def _plain(value: Any) -> Any:
    return int(value) if isinstance(value, str) and value.isdigit() else value
