# SPDX-License-Identifier: Apache-2.0
"""Yu's star: leads over Reno, seed by seed, beside runs whose leads are known."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.reproduction import yu2009_star
from analysis.reproduction.yu2009 import STARTS
from analysis.results import Run
from tests.comparisons import decided


def cell(lead: float, reno: str = "reno", **changed: str) -> list[Run]:
    """Reno and the four starts with three seeds, whose levels differ; in the first second leads are half as large."""
    found = []
    for seed in (1, 2, 3):
        for cca in (reno, *STARTS):
            times = 1.0 if cca == reno else lead + seed / 1000
            first = {"5": 100.0 * seed * times, "3": 60.0 * seed * times, "1": 20.0 * seed * (1 + times) / 2}
            params = yu2009_star.USUAL | changed | {"cca": cca}
            name = f"{cca}-{'-'.join(params.values())}-{seed}"
            found.append(
                Run(
                    "e",
                    name,
                    Path(),
                    seed,
                    params,
                    status="complete",
                    verdict="valid",
                    metrics={"initial_packets": first},
                )
            )
    return found


@pytest.mark.parametrize(("fast", "holds"), [(2.0, True), (1.2, False)])
def test_the_gap_to_reno_widens_with_the_rate_or_not(fast: float, holds: bool) -> None:
    checks = decided("yu2009-fig2.3", [*cell(1.5, rate="8mbit"), *cell(fast), *cell(9.0, delay="10ms")])
    assert [(one.part, one.holds, one.undecided) for one in checks] == [("2", holds, False)] * 4


def test_the_gain_is_held_against_rates_and_delays() -> None:
    runs = [*cell(1.5, rate="8mbit"), *cell(2.0), *cell(3.0, delay="10ms"), *cell(4.0, delay="200ms")]
    checks = decided("yu2009-claim2.5.1", runs)
    assert [one.holds for one in checks] == [True] * 4 + [False] * 4 + [True]
    assert [one.explains for one in checks] == [False] * 8 + [
        True
    ]  # where JS gains more with the long delay, as in Fig 2-4A


@pytest.mark.parametrize(("lead", "holds"), [(1.5, True), (0.9, False)])
def test_leads_grow_with_the_seconds_or_not(lead: float, holds: bool) -> None:
    checks = decided("yu2009-fig2.7", cell(lead, "perack"))
    assert [(one.part, one.holds, one.undecided) for one in checks] == [("3", holds, False)] * 2


def test_a_seed_without_reno_is_no_part_of_the_sample() -> None:
    runs = [run for run in cell(2.0) if (run.params["cca"], run.seed) != ("reno", 2)]
    assert list(yu2009_star.leads(runs, 5, "js", {}, "reno")) == [1, 3]
