# SPDX-License-Identifier: Apache-2.0
"""Runs in an experiment's results that answer nothing the file asks for now: of an older form of it, of seeds or values taken out.

They stay readable by the experiment's name; the commands that count the file's own runs say that they are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from analysis.results import Run, show
from testbed.identity import answers
from testbed.runs import PlannedRun, decisive

MOST_DIFFERENCES = 3
"""That are named of one run; the others are counted."""


def others(runs: Sequence[PlannedRun], kind: str, there: Sequence[Run]) -> list[Run]:
    """Of an experiment's complete runs those that answer no run of the file on this kind of host, whatever kernel made them."""
    asked: dict[int, list[tuple[str, Mapping[str, str]]]] = {}
    for run in runs:
        inputs = run.inputs(kind)
        asked.setdefault(run.seed, []).append((inputs.spec, inputs.traces))
    return [
        done
        for done in there
        if done.complete
        and done.host == kind
        and not any(answers(done, spec, traces) for spec, traces in asked.get(done.seed or 0, []))
    ]


def differences(done: Run, runs: Sequence[PlannedRun]) -> list[str]:
    """What of the experiment is another now than it was in this run, such as "hosts.overhead: not set → auto".

    It is held against the file's run with the same parameters and seed, else one with the same parameters, else the first.
    """
    nearest = min(runs, key=lambda run: (_shown(run.params) != _shown(done.params), run.seed != done.seed))
    then, now = (dict(_leaves(decisive(spec))) for spec in (done.spec, nearest.spec()))
    changed = [
        f"{place}: {then.get(place, 'not set')} → {now.get(place, 'not set')}"
        for place in sorted({*then, *now})
        if then.get(place) != now.get(place)
    ]
    if done.seed != nearest.seed:
        changed.append(f"seed {done.seed}")
    rest = len(changed) - MOST_DIFFERENCES
    return changed if rest <= 0 else [*changed[:MOST_DIFFERENCES], f"{rest} more"]


def note(folder_name: str, count: int) -> str:
    """One line for a person: they are there, and how they are read."""
    runs = "1 run" if count == 1 else f"{count} runs"
    return (
        f"{runs} of {folder_name} answer nothing that the file asks for now: ./warpbed status names what has changed, "
        f"./warpbed metrics {folder_name} and ./warpbed report {folder_name} read all that is there"
    )


def _shown(params: Mapping[str, Any]) -> dict[str, str]:
    return {name: show(value) for name, value in params.items()}


def _leaves(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """Each plain value with its dotted place."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _leaves(part, f"{place}.{key}" if place else str(key))
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from _leaves(part, f"{place}.{number}")
    else:
        yield place, show(value)
