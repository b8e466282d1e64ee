# SPDX-License-Identifier: Apache-2.0
"""Claims beyond the published points: on drawn paths, and under other choices for what a thesis leaves open. Each value is judged alone.

Of drawn paths the paths are the sample, not the seeds: each is judged by its means, without an interval, and what counts is on how many of
them the direction is the claim's. `chance` says how often so many or more would come where nothing but chance decides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from analysis import claims
from analysis.relations import place
from analysis.reproduction.outcomes import Evidence, Held, of_claim
from analysis.results import Run, show
from schema.claims import Claim

Look = Literal["off_point", "choice"]


@dataclass(frozen=True)
class Place:
    """One path, or one choice. label: its values as readers write them; measured: as in an entry's evidence."""

    label: str
    held: Held
    measured: str = ""
    seeds: int = 0


@dataclass(frozen=True)
class Beyond:
    """What became of a claim beyond the published points.

    names: entry/part for drawn paths, entry/number of what is open for choices
    around: what the paths are drawn around, in words; empty for choices
    """

    look: Look
    names: tuple[str, ...]
    says: str
    by: str
    places: tuple[Place, ...]
    around: str = ""

    def count(self, held: Held) -> int:
        return sum(one.held == held for one in self.places)

    @property
    def chance(self) -> float | None:
        """How likely at least so many paths hold where each holds or not with equal chance (a sign test); None where none was run."""
        n, k = self.count("holds") + self.count("contradicted"), self.count("holds")
        return sum(math.comb(n, i) for i in range(k, n + 1)) / 2**n if n else None

    @property
    def entries(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name.partition("/")[0] for name in self.names))

    @property
    def matters(self) -> bool | None:
        """Whether the outcome depends on the choice; None where some choice is not decided."""
        outcomes = {one.held for one in self.places}
        if {"holds", "contradicted"} <= outcomes:
            return True
        return None if outcomes & {"undecided", "not run yet"} or not outcomes else False


def look(
    claim: Claim,
    which: Look,
    by: str,
    runs: Sequence[Run],
    asked: Sequence[Mapping[str, Any]],
    missing: Sequence[Mapping[str, Any]] = (),
    around: str = "",
) -> Beyond:
    """What became of a claim at each place.

    asked: the parameters of each cell of the experiment; missing: of the runs that are not there
    """
    named = {*claim.where, *claim.parameters}
    places: dict[str, Place] = {}
    for params in asked:
        if not _at(params, claim.where):
            continue
        here = {name: value for name, value in params.items() if name not in named}
        label = place(here)
        if label not in places:
            alone = claim.model_copy(update={"where": {**claim.where, **here}})
            finding = claims.check(alone, runs)
            waiting = any(_at(other, alone.where) for other in missing)
            one = of_claim(finding, "1", by, all_run=not waiting)
            held = _by_means(finding, one) if which == "off_point" else one.held
            if waiting:
                places[label] = Place(label, "not run yet")
            else:
                places[label] = Place(label, held, one.measured or one.reason, one.seeds)
    return Beyond(which, tuple(getattr(claim, which)), claim.says, by, tuple(places.values()), around)


def _by_means(finding: claims.Finding, one: Evidence) -> Held:
    """Whether the means alone are as the claim says."""
    seen = [statement for part in finding.parts for statement in part.seen]
    if not seen or any(statement.spread is None for statement in seen):
        return one.held
    inside = [
        statement.spread is not None
        and statement.statement.low <= statement.spread.mean <= statement.statement.high
        and not (
            statement.statement.strict and statement.spread.mean in (statement.statement.low, statement.statement.high)
        )
        for statement in seen
    ]
    return "holds" if all(inside) else "contradicted"


def _at(params: Mapping[str, Any], where: Mapping[str, Any]) -> bool:
    return all(show(params.get(name)) == show(value) for name, value in where.items())
