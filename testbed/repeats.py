# SPDX-License-Identifier: Apache-2.0
"""Which runs to execute next: all of them, or for `repeats: {until: …}` a few per combination until their means are known well enough.

What is done depends on the file and on what the runs gave, never on the machine's speed or `--jobs`: the same file gives the
same runs.
"""

from __future__ import annotations

from collections.abc import Iterator

from analysis.precision import standings
from analysis.results import load_experiment
from schema.repeats import Repeats
from testbed.results import Results
from testbed.runner import Job


def rounds(jobs: list[Job], repeats: int | Repeats, results: Results) -> Iterator[list[Job]]:
    """Jobs to do before the next are asked for; those that are there already are among them."""
    if isinstance(repeats, int):
        yield jobs
        return
    waiting = list(by_cell(jobs).values())
    given = [0] * len(waiting)
    while True:
        some: list[Job] = []
        for place, cell in enumerate(waiting):
            done, rest = cell[: given[place]], cell[given[place] :]
            count = min(len(rest), _wanted(done, repeats, results) if done else repeats.least)
            some += rest[:count]
            given[place] += count
        if not some:
            return
        yield some


def by_cell(jobs: list[Job]) -> dict[str, list[Job]]:
    """Jobs by the parameters of their runs, in their order."""
    cells: dict[str, list[Job]] = {}
    for job in jobs:
        cells.setdefault(repr(job.run.params), []).append(job)
    return cells


def _wanted(done: list[Job], repeats: Repeats, results: Results) -> int:
    """How many more runs a combination needs."""
    if not results.folder.is_dir():  # not one of them could even be begun
        return 0
    states = standings(repeats, load_experiment(results.folder, [job.run_id for job in done]))
    if any(standing.n == 0 for standing in states):  # more of the same would hardly have what none of these has
        return 0
    return max((standing.wanted for standing in states), default=0)


def wanted_ids(jobs: list[tuple[str, str]], repeats: int | Repeats, results: Results) -> list[str]:
    """Of (combination, run id) in the sweep's order, the ids that the experiment consists of: those that have been begun, and the first
    `least` of each combination."""
    if isinstance(repeats, int):
        return [run_id for _, run_id in jobs]
    seen: dict[str, int] = {}
    ids = []
    for cell, run_id in jobs:
        number = seen[cell] = seen.get(cell, 0) + 1
        if number <= repeats.least or results.is_begun(run_id):
            ids.append(run_id)
    return ids
