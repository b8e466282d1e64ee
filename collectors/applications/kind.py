# SPDX-License-Identifier: Apache-2.0
"""What a file of collectors/applications/kinds/ says of a kind of traffic."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from plan.model import TrafficPlan

LONG = ("samples", "pages", "segments", "transfers", "connections")
"""Lists that stay in the raw files: one item for each thing that happened."""
INTERNAL = ("name", "kind", "side", "node", "error")

Sides = Mapping[str, list[dict[str, Any]]]
"""The results of an entry's programs: "client" and "server" → one for each node."""


@dataclass(frozen=True)
class Kind:
    """row: the kind's own fields from both sides' results and their plans."""

    row: Callable[[Sides, list[TrafficPlan]], dict[str, Any]]
    data_comes_from_the_server: bool = False


def own(result: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a program's result that belong in the row as they are."""
    return {key: value for key, value in result.items() if key not in (*INTERNAL, *LONG)}
