# SPDX-License-Identifier: Apache-2.0
"""When the runs of a campaign begin, and how long it still takes."""

from __future__ import annotations

import math

from base import quantities
from testbed.campaign.model import RUNS_AT_MOST, Campaign

SHORTEST_S = 1e-3
"""No run takes less, whatever its file says."""


def run_start_s(campaign: Campaign, number: int, free_s: float) -> float | None:
    """When run `number` begins: at the first multiple of `every` from free_s on; None where the campaign is over by then.

    free_s: seconds since the campaign's beginning at which the run before has ended (0 for the first)
    """
    every_s, lasts_s = quantities.seconds(campaign.every), quantities.seconds(campaign.lasts)
    start_s = free_s if every_s == 0 else math.ceil(round(free_s / every_s, 9)) * every_s
    if start_s >= lasts_s or number > most_runs(campaign):
        return None
    return start_s


def most_runs(campaign: Campaign) -> int:
    return RUNS_AT_MOST if campaign.runs is None else campaign.runs


def estimated_runs(campaign: Campaign, run_s: float) -> int:
    """How many runs the campaign has if each takes run_s seconds."""
    every_s, lasts_s = quantities.seconds(campaign.every), quantities.seconds(campaign.lasts)
    period_s = max(run_s, SHORTEST_S)
    if every_s:  # each begins at a multiple of it
        period_s = max(1, math.ceil(round(period_s / every_s, 9))) * every_s
    return min(most_runs(campaign), math.ceil(round(lasts_s / period_s, 9)))


def shortest_run_s(campaign: Campaign) -> float:
    """Seconds of a run whose transfers take no time: its pauses."""
    transfers = len(campaign.receivers) * len(campaign.algorithms) * len(campaign.sizes)
    return transfers * quantities.seconds(campaign.pause)
