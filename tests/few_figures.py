# SPDX-License-Identifier: Apache-2.0
"""Reports with two figures of metrics instead of the thirty that one function draws; tests/long/test_report_figures.py draws them all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from analysis.report import static

SWEEPS = ("utilization", "rtt_min_ms")


def few(data: Mapping[str, Any]) -> dict[str, Any]:
    return {**data, "metrics": [one for one in data["metrics"] if one["name"] in SWEEPS]}


def draw_few(patch: pytest.MonkeyPatch) -> None:
    """As long as the patch lasts."""
    write, each = static.write_figures, static.figures

    def write_few(data: Mapping[str, Any], folder: Path) -> list[Path]:
        return write(few(data), folder)

    patch.setattr(static, "write_figures", write_few)
    patch.setattr(static, "figures", lambda data: each(few(data)))
