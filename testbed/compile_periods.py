# SPDX-License-Identifier: Apache-2.0
"""Busy periods of entries with `on` and `off`."""

from __future__ import annotations

from plan import draws
from schema import distributions
from schema.traffic.entry import BusyPeriods
from testbed.compile_context import Context, limited


def periods(entry: BusyPeriods, c: Context) -> list[list[float]]:
    """When an entry is busy: [start, end] in seconds."""
    on = None if entry.on is None else distributions.times(entry.on)
    off = None if entry.off is None else distributions.times(entry.off)
    busy = draws.periods(on, off, c.window.start_s, c.window.stop_s, c.random("periods"))
    return [list(period) for period in limited(busy, "busy periods")]
