# SPDX-License-Identifier: Apache-2.0
"""When the runs of a campaign begin, and how long it still takes."""

from __future__ import annotations

import math

from base import quantities
from testbed.campaign.model import Campaign


def run_start_s(campaign: Campaign, number: int, free_s: float) -> float | None:
    """When run `number` begins: at the first multiple of `every` from free_s on; None where the campaign is over by then.

    free_s: seconds since the campaign's beginning at which the run before has ended (0 for the first)
    """
    every_s, lasts_s = quantities.seconds(campaign.every), quantities.seconds(campaign.lasts)
    start_s = free_s if every_s == 0 else math.ceil(round(free_s / every_s, 9)) * every_s
    if start_s >= lasts_s or (campaign.runs is not None and number > campaign.runs):
        return None
    return start_s


def estimated_runs(campaign: Campaign, run_s: float) -> int:
    """How many runs the campaign has if each takes run_s seconds."""
    number, free_s = 0, 0.0
    while (start_s := run_start_s(campaign, number + 1, free_s)) is not None:
        number += 1
        free_s = start_s + max(run_s, 1e-3)
    return number


def shortest_run_s(campaign: Campaign) -> float:
    """Seconds of a run whose transfers take no time: its pauses."""
    transfers = len(campaign.receivers) * len(campaign.algorithms) * len(campaign.sizes)
    return transfers * quantities.seconds(campaign.pause)
