# SPDX-License-Identifier: Apache-2.0
"""Which runs to execute next: all of them, or for `repeats: {until: …}` a few per combination until their means are known well enough,
or the file's claims decided.

What is done depends on the file and on what the runs gave, never on the machine's speed or `--jobs`: the same file gives the
same runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from analysis.claims import check_all
from analysis.precision import standings
from analysis.results import Run, load_experiment, show
from schema.claims import Claim
from schema.repeats import DECIDED, Repeats
from testbed.results import Results
from testbed.runner import Job


def rounds(
    jobs: list[Job], repeats: int | Repeats, results: Results, claims: Sequence[Claim] = ()
) -> Iterator[list[Job]]:
    """Jobs to do before the next are asked for; those that are there already are among them.

    claims: of the file, for repeats until they are decided
    """
    if isinstance(repeats, int):
        yield jobs
        return
    waiting = list(by_cell(jobs).values())
    given = [0] * len(waiting)
    while True:
        some: list[Job] = []
        if repeats.until == DECIDED and any(given):
            wanted = _undecided([cell[:n] for cell, n in zip(waiting, given, strict=True)], claims, repeats, results)
        else:
            wanted = {}
        for place, cell in enumerate(waiting):
            done, rest = cell[: given[place]], cell[given[place] :]
            if not done:
                count = repeats.least
            elif repeats.until == DECIDED:
                count = wanted.get(_named(cell[0].run.params), 0)
            else:
                count = _wanted(done, repeats, results)
            count = min(len(rest), count)
            some += rest[:count]
            given[place] += count
        if not some:
            return
        yield some


def _named(params: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """A combination, however its values are typed."""
    return tuple(sorted((name, show(value)) for name, value in params.items()))


def _undecided(
    done: list[list[Job]], claims: Sequence[Claim], repeats: Repeats, results: Results
) -> dict[tuple[tuple[str, str], ...], int]:
    """How many more runs the combinations need that undecided claims compare: as many as would decide them, at most doubling."""
    if not results.folder.is_dir():
        return {}
    runs = load_experiment(results.folder, [job.run_id for cell in done for job in cell])
    count = {_named(cell[0].run.params): len(cell) for cell in done if cell}

    def elsewhere(name: str) -> Sequence[Run]:
        return load_experiment(results.folder.parent / name)

    wanted: dict[tuple[tuple[str, str], ...], int] = {}
    for finding in check_all(claims, runs, elsewhere, repeats.looks):
        for part in finding.parts if finding.outcome == "undecided" else ():
            if part.outcome != "undecided":
                continue
            for seen in part.seen:
                for term in seen.statement.terms:
                    place = _named(term.cell.params)
                    have = count.get(place, 0)
                    wanted[place] = max(wanted.get(place, 0), min(have, part.more or have))
    return wanted


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
