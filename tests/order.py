# SPDX-License-Identifier: Apache-2.0
"""Which file of tests starts when, so that files that wait run beside files that compute.

pytest-xdist's `loadfile` hands the next file of one list to the worker that has finished: what tests of a file share is made once, and
the list's order decides what runs beside what. The longest files are those that wait most (for a play, a container, a stuck peer).
With all of them first the CPUs would stand idle for a quarter of that time, and have more to do than they can afterwards.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from base.paths import ROOT
from tests.durations import Cost

if TYPE_CHECKING:
    import pytest

LATEST = 0.8
"""A file starts at the latest when it takes this part of what each worker still has to do: a whole run is never quite like the last."""


def side_by_side(items: list[pytest.Item], costs: Mapping[str, Cost], workers: int) -> list[pytest.Item]:
    """The tests file by file, the files in the order in which `workers` of them keep the CPUs evenly busy.

    costs: of each file in the last whole run. Files that are not among them come first where one of their tests is slow, else last.
    """
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    unknown = [file for file in files if name_of(file) not in costs]
    slow = [file for file in unknown if any(item.get_closest_marker("slow") for item in files[file])]
    known = _planned({file: costs[name_of(file)] for file in files if file not in unknown}, workers)
    ordered = [*slow, *known, *(file for file in unknown if file not in slow)]
    return [item for file in ordered for item in files[file]]


def _planned(costs: Mapping[Path, Cost], workers: int) -> list[Path]:
    """Play the run through with the costs of the last one: who becomes free takes the longest file of the kind that is missing.

    A file so long that it would end last comes at once, whatever its kind.
    """
    left = sorted(costs, key=lambda file: -costs[file].took_s)
    left_s = math.fsum(cost.took_s for cost in costs.values())
    usual = math.fsum(cost.cpu_s for cost in costs.values()) / max(left_s, 1e-9)
    running = [(0.0, worker, usual) for worker in range(workers)]
    ordered = []
    while left:
        now_s, worker, _ = heapq.heappop(running)
        is_lacking_work = math.fsum(busy for _, _, busy in running) < usual * len(running)
        fitting = [file for file in left if (costs[file].busy >= usual) == is_lacking_work]
        file = left[0] if not fitting or costs[left[0]].took_s * workers > LATEST * left_s else fitting[0]
        left.remove(file)
        left_s -= costs[file].took_s
        ordered.append(file)
        heapq.heappush(running, (now_s + costs[file].took_s, worker, costs[file].busy))
    return ordered


def name_of(file: Path) -> str:
    """A file of tests below the checkout, as pytest's reports name it."""
    return str(file.relative_to(ROOT)) if file.is_relative_to(ROOT) else str(file)
