# SPDX-License-Identifier: Apache-2.0
"""Summaries of many numbers: mean and percentiles."""

from __future__ import annotations

import math
from collections.abc import Sequence

QUANTILES = (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))


def quantile(ordered: Sequence[float], share: float) -> float:
    """Linear between the nearest ranks, as numpy's default."""
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def spread(name: str, unit: str, values: Sequence[float]) -> dict[str, float | None]:
    """min, mean, p50, p95, p99 and max of values, named like rtt_p95_ms; None where there are none."""
    if not values:
        return {f"{name}_{part}_{unit}": None for part in ("min", "mean", "max", *(q for q, _ in QUANTILES))}
    ordered = sorted(values)
    statistics: dict[str, float | None] = {
        f"{name}_min_{unit}": ordered[0],
        f"{name}_mean_{unit}": math.fsum(ordered) / len(ordered),
        f"{name}_max_{unit}": ordered[-1],
    }
    return statistics | {f"{name}_{part}_{unit}": quantile(ordered, share) for part, share in QUANTILES}
