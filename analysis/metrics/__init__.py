# SPDX-License-Identifier: Apache-2.0
"""The metrics of a run: `compute` for the runner, `REGISTRY` and `find` for whoever names metrics.

from analysis import metrics
metrics.compute(run_dir, {"duration_s": 60, "warmup_s": 0,
                          "bottleneck": {"node": "r1", "interface": "r1-eth1", "rate_bps": 50e6}})
"""

from __future__ import annotations

import importlib
import math
import pkgutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from analysis.metrics.needs import unknown
from analysis.metrics.registry import REGISTRY, Metric, find, lookup
from analysis.metrics.run import RunRecords, parse_context, read_run

for _file in pkgutil.iter_modules(__path__):  # importing registers: each file of this folder may define metrics
    importlib.import_module(f"{__name__}.{_file.name}")

__all__ = ["REGISTRY", "Metric", "RunRecords", "compute", "evaluate", "find", "lookup", "parse_context", "read_run"]


def compute(run_dir: Path, context: Mapping[str, Any]) -> dict[str, Any]:
    """All metrics of a run folder; a metric that its records cannot give is None, never a guess."""
    return evaluate(read_run(run_dir, context))


def evaluate(run: RunRecords) -> dict[str, Any]:
    """All metrics of records already in memory, as JSON can hold them; None what some flow has no source for."""
    values = {name: _plain(metric.compute(run)) for name, metric in REGISTRY.items()}
    return {
        name: _blank(value) if unknown(REGISTRY[name].needs, run.sources) else value for name, value in values.items()
    }


def _blank(value: Any) -> Any:
    return dict.fromkeys(value) if isinstance(value, dict) else None


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
