# SPDX-License-Identifier: Apache-2.0
"""A sweep as an xarray dataset: a dimension per parameter, and one for the seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from analysis.metrics import REGISTRY, find, lookup
from analysis.results import Run, parameters, quantity, show
from analysis.statistics import is_number
from base.errors import UsageError
from warpbed.table import extra

if TYPE_CHECKING:
    import xarray

SEED = "seed"


def dataset(runs: Sequence[Run], metrics: Sequence[str]) -> xarray.Dataset:
    """The metrics of the runs that count, by parameters and seed.

    Where several runs answer one combination and seed, as after a change of the kernel, the one that ended last counts.
    """
    xr = extra("xarray")
    names = metrics or [one.name for one in REGISTRY.values() if not one.keyed]
    counted = sorted((run for run in runs if run.counted), key=lambda run: run.timing.get("ended", 0))
    if not counted:
        raise UsageError("no run is complete and valid, so that there is nothing to put into a dataset")
    swept = parameters(counted)
    if SEED in swept:
        raise UsageError(f"a parameter of the sweep is called {SEED!r}, which the dataset uses for the seeds")
    coordinates: dict[str, list[Any]] = {name: _values(counted, name) for name in swept}
    coordinates[SEED] = sorted({run.seed for run in counted if run.seed is not None})
    shape = [len(values) for values in coordinates.values()]
    arrays = {name: np.full(shape, np.nan) for name in names}
    for run in counted:
        place = tuple(
            values.index(run.seed if name == SEED else show(run.params.get(name)))
            for name, values in coordinates.items()
        )
        for name in names:
            value = lookup(dict(run.metrics), name)
            arrays[name][place] = float(value) if is_number(value) else np.nan
    data = xr.Dataset(
        {name: (list(coordinates), array, _attributes(name)) for name, array in arrays.items()}, coords=coordinates
    )
    for name in swept:
        numbers = [quantity(value) for value in coordinates[name]]
        if None not in numbers:
            data = data.assign_coords({f"{name}_value": (name, numbers)})
    return data  # type: ignore[no-any-return]


def _values(runs: Sequence[Run], name: str) -> list[str]:
    """A parameter's values as text: in the order of their numbers where all have one, else as they come."""
    texts = list(dict.fromkeys(show(run.params.get(name)) for run in runs))
    numbers = {text: quantity(text) for text in texts}
    return texts if None in numbers.values() else sorted(texts, key=lambda text: numbers[text] or 0.0)


def _attributes(name: str) -> dict[str, str]:
    metric = find(name)
    return {"units": metric.unit, "long_name": metric.label, "description": metric.description}
