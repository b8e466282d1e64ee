# SPDX-License-Identifier: Apache-2.0
"""What ns-2 and ns-3 themselves came to with settings of the theses, as `benchmarks.ns2` and `benchmarks.ns3_lossy` record it.

Nothing of Warpbed has taken part in these numbers, so they show whether a contradiction lies in our code or in what a text tells of its
setting.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from base.paths import ROOT

NS2, NS3 = (ROOT / f"docs/reproduction/{name}.json" for name in ("ns2", "ns3"))

Known = Mapping[str, Mapping[str, Sequence[float]]]
"""Script → its arguments, as they are on a command line → the numbers that it prints."""


def key(*arguments: float | str) -> str:
    return " ".join(map(str, arguments))


def read(file: Path) -> Known:
    """The record; nothing where there is none."""
    if not file.exists():
        return {}
    return {script: of_script["runs"] for script, of_script in json.loads(file.read_text()).items()}


@functools.cache
def _recorded() -> Known:
    return {**read(NS2), **read(NS3)}


def numbers(script: str, *arguments: float | str) -> Sequence[float] | None:
    """What a script of benchmarks/ has printed with these arguments; None where that is not recorded."""
    return _recorded().get(script, {}).get(key(*arguments))
