# SPDX-License-Identifier: Apache-2.0
"""Names that experiment files may use, and the nearest one to a name that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULES = ROOT / "kernels/modules"

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


def project_ccas() -> dict[str, Path]:
    """The algorithms of kernels/modules: name → source file."""
    return {path.stem.removeprefix("tcp_"): path for path in sorted(MODULES.glob("tcp_*.c"))}


def algorithms() -> list[str]:
    return sorted({*IN_TREE_CCAS, *project_ccas()})


def nearest(name: str, allowed: Iterable[str]) -> str:
    """A sentence on what is allowed, with the nearest name first where one is near."""
    names = sorted(allowed)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}? " if near else ""
    return f"{hint}allowed: {', '.join(names) or 'none'}"
