# SPDX-License-Identifier: Apache-2.0
"""Means that were measured before, kept in a file, and which of them have changed by more than their interval."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from analysis.metrics import REGISTRY
from analysis.results import Run, show
from analysis.statistics import cells
from analysis.table import number
from base.errors import UsageError
from base.files import replace_text
from base.text import clean

MOST_BYTES = 64 << 20
ROUNDING = 1e-9
"""Relative; what is less than this apart is the same number."""

Finite = Annotated[float, Field(allow_inf_nan=False)]


class Mean(BaseModel):
    """A metric's mean in one combination of the sweep; low and high: its 95 % interval, None for a single observation."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    params: Annotated[dict[str, Annotated[str, Field(max_length=400)]], Field(max_length=40)]
    metric: Annotated[str, Field(max_length=100)]
    n: Annotated[int, Field(ge=1)]
    mean: Finite
    low: Finite | None
    high: Finite | None


class Baseline(BaseModel):
    """The file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    warpbed_baseline: Literal[1]
    experiment: Annotated[str, Field(max_length=100)]
    means: list[Mean]


@dataclass(frozen=True)
class Change:
    """A mean beside the baseline's. changed: it lies outside of the baseline's interval, or is there no more."""

    params: dict[str, str]
    metric: str
    changed: bool
    words: str


def means(runs: Sequence[Run], metrics: Sequence[str]) -> list[Mean]:
    """Those of an experiment's metrics that are one number; all metrics where it names none."""
    names = [name for name in metrics if name in REGISTRY] or [one.name for one in REGISTRY.values()]
    rows = []
    for cell in cells(runs):
        for name in names:
            estimate = None if REGISTRY[name].keyed else cell.estimate(name)
            if estimate is not None:
                t = estimate.t_interval
                params = {key: show(value) for key, value in cell.params.items()}
                low, high = (t.low, t.high) if t else (None, None)
                rows.append(Mean(params=params, metric=name, n=estimate.n, mean=estimate.mean, low=low, high=high))
    return rows


def save(file: Path, experiment: str, rows: Sequence[Mean]) -> None:
    """Write a baseline; raises UsageError where there is nothing to compare with later."""
    if not rows:
        raise UsageError(
            f"{file}: no run is complete and valid, so that there is no mean to keep; ./warpbed run makes them"
        )
    replace_text(
        file, Baseline(warpbed_baseline=1, experiment=experiment, means=list(rows)).model_dump_json(indent=1) + "\n"
    )


def read(file: Path, experiment: str) -> Baseline:
    """A baseline of this experiment; raises UsageError where it is none."""
    try:
        if file.stat().st_size > MOST_BYTES:
            raise UsageError(f"{file}: more than {MOST_BYTES} bytes, which a baseline has at most")
        baseline = Baseline.model_validate_json(file.read_bytes())
    except OSError as error:
        raise UsageError(
            f"{file}: {error.strerror}; ./warpbed compare FILE --save-baseline {file} makes one"
        ) from error
    except ValidationError as error:
        first: Any = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UsageError(
            clean(f"{file}: {place}: {first['msg']}; not a baseline of ./warpbed compare --save-baseline")
        ) from error
    if baseline.experiment != experiment:
        raise UsageError(f"{file}: is a baseline of {clean(baseline.experiment)}, not of {experiment}")
    return baseline


def changes(before: Baseline, now: Sequence[Mean]) -> list[Change]:
    """Each mean of the baseline beside the one now."""
    new = {(json.dumps(one.params, sort_keys=True), one.metric): one for one in now}
    rows = []
    for old in before.means:
        one = new.get((json.dumps(old.params, sort_keys=True), old.metric))
        if one is None:
            rows.append(Change(old.params, old.metric, True, f"{number(old.mean)} → nothing: no such run counts now"))
            continue
        low, high = (old.mean, old.mean) if old.low is None or old.high is None else (old.low, old.high)
        slack = ROUNDING * max(abs(low), abs(high))
        changed = not low - slack <= one.mean <= high + slack
        interval = "one observation" if old.low is None else f"{number(low)} … {number(high)}"
        rows.append(
            Change(
                old.params,
                old.metric,
                changed,
                f"{number(old.mean)} ({interval}, n={old.n}) → {number(one.mean)} (n={one.n})",
            )
        )
    return rows
