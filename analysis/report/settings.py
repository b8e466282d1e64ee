# SPDX-License-Identifier: Apache-2.0
"""The environment of the runs as the report lists it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.results import show

ELSEWHERE = ("topology", "bottleneck")  # the setup draws these
NOT_RECORDED, EMPTY = "not recorded", "empty"


@dataclass(frozen=True)
class Settings:
    """A part of the environment: what all runs share of it, and what differs between them."""

    name: str
    common: tuple[tuple[str, str], ...]
    differing: tuple[tuple[str, tuple[str, ...]], ...]


def settings_of(specs: Sequence[Mapping[str, Any]]) -> tuple[Settings, ...]:
    """The recorded environment by its parts, the drawn network left out."""
    parts = dict.fromkeys(name for one in specs for name in one if name not in ELSEWHERE)
    single = [name for name in parts if not any(isinstance(one.get(name), Mapping) for one in specs)]
    settings = [_settings("general", [{name: one.get(name) for name in single} for one in specs])] if single else []
    return (*settings, *(_settings(name, [one.get(name) for one in specs]) for name in parts if name not in single))


def _settings(name: str, specs: Sequence[Any]) -> Settings:
    flat = [_flatten(one) if one is not None else {} for one in specs]
    common, differing = [], []
    for key in dict.fromkeys(key for one in flat for key in one):
        values = tuple(dict.fromkeys(one.get(key, NOT_RECORDED) for one in flat))
        if len(values) == 1:
            common.append((key, values[0]))
        else:
            differing.append((key, values))
    return Settings(name, tuple(common), tuple(differing))


def _flatten(value: Any, prefix: str = "") -> dict[str, str]:
    if isinstance(value, Mapping):
        flat: dict[str, str] = {}
        for name, part in value.items():
            flat.update(_flatten(part, f"{prefix} › {name}" if prefix else str(name)))
        return flat
    return {prefix: ", ".join(show(part) for part in value) if isinstance(value, list) else show(value) or EMPTY}
