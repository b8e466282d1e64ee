# SPDX-License-Identifier: Apache-2.0
"""What the functions of testbed/traffic/ are given: when, until when, random draws, and where the plans go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from plan import draws

MAX_ARRIVALS = 100_000
"""Transfers or busy periods of one entry: beyond it, a text with the wrong unit is likelier than an experiment."""


@dataclass(frozen=True)
class Window:
    """When an entry is active, seconds since the run's start."""

    start_s: float
    stop_s: float


@dataclass(frozen=True)
class Context:
    """add: takes the side (client, server), the node and the settings of one process."""

    window: Window
    end_s: float
    seed: int
    add: Callable[[str, str, dict[str, Any]], None]

    def random(self, purpose: str) -> Random:
        return draws.stream(draws.seed_of(self.seed, purpose))


def limited(items: Iterator[Any], what: str) -> list[Any]:
    """The items, unless there are more than an experiment has."""
    taken = []
    for item in items:
        taken.append(item)
        if len(taken) > MAX_ARRIVALS:
            raise ValueError(f"more than {MAX_ARRIVALS} {what}; is the unit right?")
    return taken
