# SPDX-License-Identifier: Apache-2.0
"""UDP at a constant rate or with random gaps."""

from __future__ import annotations

from typing import Literal

from schema.base import Rate
from schema.traffic.entry import BusyPeriods, Entry, Packet


class Cbr(BusyPeriods, Entry):
    """UDP at a constant bit rate; with `on` and `off` a square wave or Pareto on/off source."""

    kind: Literal["cbr"]
    rate: Rate
    packet: Packet = "1000B"


class Poisson(BusyPeriods, Entry):
    """UDP with exponential gaps between packets; `rate` is the mean."""

    kind: Literal["poisson"]
    rate: Rate
    packet: Packet = "1000B"
