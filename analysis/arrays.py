# SPDX-License-Identifier: Apache-2.0
"""numpy and Arrow for this package, and what reads records with them, imported when something of them is first used.

Most commands name metrics and compute none, and importing both takes longer than such a command takes to answer.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    from collectors import reading

__all__ = ["np", "pa", "pc", "pq", "reading"]


class Lazy:
    """Stands for a module. What was used once is kept here, so that the next use costs what it costs with the module."""

    def __init__(self, name: str) -> None:
        self._module = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(importlib.import_module(self._module), name)
        self.__dict__[name] = value
        return value


if not TYPE_CHECKING:
    np, pa, pc, pq, reading = (
        Lazy(name) for name in ("numpy", "pyarrow", "pyarrow.compute", "pyarrow.parquet", "collectors.reading")
    )


class _WithoutPandas:
    """On sys.meta_path: pandas is not found."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError("not looked for here", name=name)
        return None


def without_pandas() -> None:
    """Let Arrow go without pandas in this process, which takes a quarter of a second to import where it is installed.

    Arrow looks for it once, when it first converts something, although nothing that a run converts is for pandas. Who asks Arrow for
    a data frame, or imports pandas, gets it still.
    """
    import pyarrow

    blind = _WithoutPandas()
    sys.meta_path.insert(0, blind)
    try:
        pyarrow.array([0.0])
    finally:
        sys.meta_path.remove(blind)
