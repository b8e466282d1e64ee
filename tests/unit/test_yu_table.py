# SPDX-License-Identifier: Apache-2.0
"""Yu's Table 4-1: cells with their deviations, beside samples whose moments are known."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from analysis.reproduction.yu2009_table import FAIR, METRIC, by_start, deviation, shares_by_run
from analysis.results import Run
from schema.catalogue import catalogues
from tests import lab
from tests.comparisons import decided

TABLE_4_1, CONCLUSIONS = "yu2009-tab4.1", "yu2009-claim4.7"


def starts(cca: str, rate: int, *estimates: float | None) -> list[Run]:
    return [
        Run(
            "e",
            f"{cca}-{rate}-{seed}",
            Path(),
            seed,
            {"cca": cca, "rate": f"{rate}mbit"},
            status="complete",
            verdict="valid",
            metrics={"slow_start_ssthresh_packets": {"f": value}},
        )
        for seed, value in enumerate(estimates, start=1)
    ]


def test_starts_of_one_run_are_each_a_sample_and_the_first_is_the_same_in_two_experiments() -> None:
    alone = starts("spm", 25, 40.0)
    found = {"f1": 40.0, "f2": 50.0, "f10": 60.0, "f3": None, "x1": 7.0}
    several = dataclasses.replace(alone[0], metrics={"slow_start_ssthresh_packets": found})
    assert by_start([*alone, several])["spm", 25.0] == {(1, 1): 40.0, (1, 2): 50.0, (1, 10): 60.0}


def test_the_first_of_ten_starts_is_the_one_that_a_run_of_its_own_has() -> None:
    """In the record of what was run, seed by seed: by this a start that both have counts once."""
    record = json.loads((lab.ROOT / "docs/reproduction/yu2009.json").read_text())
    first, alone = (
        {
            (run["params"]["cca"], run["params"]["rate"], run["seed"]): run["metrics"][
                f"slow_start_ssthresh_packets.{flow}"
            ]
            for run in record[f"experiments/yu2009/{file}.yml"]["runs"]
        }
        for file, flow in (("tab4.1-starts", "f1"), ("fig4.34-4.35-whole", "f"))
    )
    both = first.keys() & alone.keys()
    assert len(both) >= 50
    assert [where for where in both if first[where] != alone[where]] == []


def test_a_deviation_has_the_interval_of_the_chi_square_tables() -> None:
    # 4 degrees of freedom: quantiles 0.4844 and 11.143; 9: 2.7004 and 19.023 (any table)
    for sample, low, high in (((1, 2, 3, 4, 5), 0.4844, 11.143), (range(10), 2.7004, 19.023)):
        found = deviation([float(x) for x in sample])
        assert found is not None
        free = len(sample) - 1
        assert found[1] == pytest.approx(found[0] * (free / high) ** 0.5, rel=0.01)
        assert found[2] == pytest.approx(found[0] * (free / low) ** 0.5, rel=0.05)
    assert deviation([1.0]) is None


def test_each_cell_is_held_against_the_printed_mean_and_deviation() -> None:
    # the table has 2563.9 and 447.9 for Hoe at 400 Mbit/s, 1071.3 and 183.8 for BWE
    hoe = starts("hoe", 400, 2564 - 600, 2564 - 300, 2564, 2564 + 300, 2564 + 600)
    bwe = starts("astart_bwe", 400, 500, 501, 502, 503, 504, None)
    checks = {one.says: one for one in decided(TABLE_4_1, [*hoe, *bwe])}
    assert {one.part for one in checks.values()} == {"numbers"}
    assert [(one.published, one.holds) for one in checks.values()] == [
        (1071.3, False), (183.8, False), (2563.9, True), (447.9, True)
    ]  # fmt: skip
    assert list(by_start(bwe)["astart_bwe", 400.0].values()) == [500, 501, 502, 503, 504]
    assert not decided(TABLE_4_1, starts("hoe", 400, 2564))  # one start has no interval


def test_the_right_windows_are_those_beside_the_printed_table() -> None:
    numbers = {one.id: one for one in catalogues(lab.ROOT)["yu2009"].entries}[TABLE_4_1].published.numbers
    assert isinstance(numbers, list)
    fair = {float(rate): window for table in numbers[1:] for rate, window in table["rows"]}
    assert {rate: fair[rate] for rate in FAIR} == FAIR


def several(cca: str, rate: int, *runs: list[float]) -> list[Run]:
    """A run for each list, of as many starts as it has estimates."""
    return [
        dataclasses.replace(run, metrics={METRIC: {f"f{i}": value for i, value in enumerate(estimates, start=1)}})
        for run, estimates in zip(starts(cca, rate, *(0.0 for _ in runs)), runs, strict=True)
    ]


def test_spm_s_estimates_lie_further_apart_than_bwe_s_where_they_do_run_by_run() -> None:
    """Deviation over mean of 32, 32, 32, 32, 200 is 75.1 / 65.6; of five from 360 to 400 a twentieth."""
    spm = several("spm", 25, [32, 32, 32, 32, 200], [32, 32, 32, 200, 210], [32, 32, 90, 200, 500])
    close = several("astart_bwe", 25, [360, 370, 380, 390, 400], [350, 370, 380, 390, 400], [360, 370, 380, 390, 420])
    shares = shares_by_run(by_start(spm)["spm", 25.0])
    assert shares[1] == pytest.approx(75.13 / 65.6, rel=1e-3)
    (check,) = (one for one in decided(TABLE_4_1, [*spm, *close]) if one.part == "7")
    assert check.holds and not check.undecided
    wide = several("astart_bwe", 25, [1, 1, 1, 1, 900], [1, 1, 1, 1, 910], [1, 1, 1, 1, 905])
    (check,) = (one for one in decided(TABLE_4_1, [*spm, *wide]) if one.part == "7")
    assert not check.holds and not check.undecided
    assert not [one for one in decided(TABLE_4_1, starts("spm", 100, 1.0, 2.0)) if one.part == "7"], "a start a run"


def test_bwe_is_nearest_to_the_right_window_at_moderate_congestion_or_not() -> None:
    def outcomes(at_100: float) -> list[tuple[str, bool]]:
        bwe = [
            run
            for rate, estimate in ((25, 214.0), (100, at_100), (400, 1071.0))  # as printed but for that at 100
            for run in starts("astart_bwe", rate, *(estimate + spread for spread in (-3, 0, 4)))
        ]
        return [(one.part, one.holds) for one in decided(CONCLUSIONS, bwe)]

    assert outcomes(694.2) == [("2", True), ("2", True)]
    assert outcomes(100.0) == [("2", False), ("2", False)]


def test_spm_estimates_well_at_25_and_400_by_the_printed_means() -> None:
    spm = [*starts("spm", 25, 50, 57, 64), *starts("spm", 400, 1200, 1201, 1202)]
    checks = [one for one in decided(CONCLUSIONS, spm) if one.part == "1"]
    assert [(one.published, one.holds) for one in checks] == [(62.8, True), (2644.0, False)]


@pytest.mark.parametrize(("at_50", "holds"), [((98.0, 99.0, 100.0), True), ((150.0, 151.0, 152.0), False)])
def test_spm_is_below_half_of_the_fair_window_at_50_or_not(at_50: tuple[float, ...], holds: bool) -> None:
    """Half of 218.9 packets; the thesis' mean is 98.8."""
    runs = [*starts("spm", 50, *at_50), *starts("spm", 25, 56.0, 57.0, 58.0)]
    near, below = (check for check in decided(TABLE_4_1, runs) if check.part == "5")
    assert near.holds
    assert below.holds is holds
