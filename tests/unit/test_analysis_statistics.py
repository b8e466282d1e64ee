# SPDX-License-Identifier: Apache-2.0
"""Cells of a sweep, intervals and paired comparisons."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.cells import as_csv, paired_rows, render, rows
from analysis.errors import AnalysisError
from analysis.results import Run
from analysis.statistics import Cell, cells, estimate, paired, t_cdf, t_quantile


def run(seed: int, value: float | None, verdict: str = "valid", status: str = "complete", **params: Any) -> Run:
    return Run(
        "e", f"{params}{seed}", Path("x"), seed, params, "virtual", status, "", verdict, (), {"utilization": value}
    )


@pytest.mark.parametrize(
    ("degrees", "quantile"),  # two-sided 95 %, from printed tables
    [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (5, 2.571), (9, 2.262), (10, 2.228), (29, 2.045), (120, 1.980)],
)
def test_t_quantiles_agree_with_the_tables(degrees: int, quantile: float) -> None:
    assert t_quantile(0.975, degrees) == pytest.approx(quantile, abs=5e-4)


@settings(deadline=None)
@given(st.floats(-50, 50), st.integers(1, 200))
def test_the_t_distribution_is_symmetric(t: float, degrees: int) -> None:
    assert t_cdf(t, degrees) + t_cdf(-t, degrees) == pytest.approx(1.0)


def test_mean_and_t_interval_of_three_values() -> None:
    # mean 2, deviation 1: half width 4.3027 / √3
    estimated = estimate([1, 2, 3])
    assert estimated is not None
    assert estimated.mean == 2
    assert estimated.t_interval is not None
    assert estimated.t_interval.high - 2 == pytest.approx(2.4841, abs=1e-3)
    assert estimated.bootstrap_interval is not None
    assert 1 <= estimated.bootstrap_interval.low < 2 < estimated.bootstrap_interval.high <= 3


def test_one_value_has_no_interval_and_none_no_estimate() -> None:
    estimated = estimate([5])
    assert estimated is not None
    assert (estimated.n, estimated.mean, estimated.t_interval, estimated.bootstrap_interval) == (1, 5.0, None, None)
    assert estimate([]) is None


def test_the_bootstrap_repeats_itself() -> None:
    assert estimate([1, 5, 9, 2]) == estimate([1, 5, 9, 2])


def test_cells_keep_seeds_together_and_count_only_what_counts() -> None:
    runs = [
        run(1, 0.9, cca="reno"),
        run(2, 0.7, cca="reno"),
        run(3, 0.1, verdict="invalid", cca="reno"),
        run(4, None, status="failed", verdict="", cca="reno"),
        run(1, 0.5, verdict="suspect", cca="cubic"),
    ]
    reno, cubic = cells(runs)
    assert (len(reno.runs), len(reno.counted)) == (4, 2)
    estimated = reno.estimate("utilization")
    assert estimated is not None
    assert estimated.mean == pytest.approx(0.8)
    assert cubic.values("utilization") == [0.5]


def test_pairs_are_of_equal_seeds() -> None:
    a = Cell({}, (run(1, 0.5), run(2, 0.6), run(3, 0.7)))
    b = Cell({}, (run(2, 0.8), run(3, 0.7), run(4, 0.1)))
    pairs = paired(a, b, "utilization")
    assert pairs is not None
    assert pairs.seeds == (2, 3)
    assert pairs.difference.mean == pytest.approx(0.1)
    assert paired(a, Cell({}, (run(9, 0.8),)), "utilization") is None


SWEEP = [
    run(seed, value + seed / 100, cca=cca, buffer=buffer)
    for cca, value in (("cubic", 0.5), ("medley", 0.9))
    for buffer in ("50p", "250p")
    for seed in (1, 2, 3)
]


def test_rows_of_cells_have_both_intervals() -> None:
    table_rows = rows(SWEEP)
    assert [row["params"] for row in table_rows] == [
        {"cca": cca, "buffer": buffer} for cca in ("cubic", "medley") for buffer in ("50p", "250p")
    ]
    first = table_rows[0]
    assert (first["metric"], first["n"], first["mean"]) == ("utilization", 3, pytest.approx(0.52))
    assert first["t_low"] < first["bootstrap_low"] < 0.52 < first["bootstrap_high"] < first["t_high"]
    assert rows([run(1, 0.5, cca="cubic")])[0]["t_low"] is None, "one run says nothing of spread"


def test_paired_rows_compare_at_equal_seeds_and_equal_other_parameters() -> None:
    pairs = paired_rows(SWEEP, "cca", "cubic", "medley")
    assert [row["params"] for row in pairs] == [{"buffer": b, "cca": "cubic → medley"} for b in ("50p", "250p")]
    assert all(row["mean"] == pytest.approx(0.4) and row["seeds"] == [1, 2, 3] and row["differs"] for row in pairs)
    assert pairs[0]["t_high"] - pairs[0]["t_low"] == pytest.approx(0, abs=1e-9), "the seeds' spread is taken out"
    same = paired_rows(
        [run(s, v, cca=c) for c, vs in (("a", (1, 2)), ("b", (2, 1))) for s, v in enumerate(vs)], "cca", "a", "b"
    )
    assert not same[0]["differs"]


def test_paired_rows_want_a_parameter_and_values_that_are_there() -> None:
    with pytest.raises(AnalysisError, match="no run has a parameter 'kernel'; there are cca, buffer"):
        paired_rows(SWEEP, "kernel", "a", "b")
    with pytest.raises(AnalysisError, match="no run has cca=vegas; there are cubic, medley"):
        paired_rows(SWEEP, "cca", "cubic", "vegas")


def test_rows_are_shown_as_a_table_and_as_csv() -> None:
    table = render(paired_rows(SWEEP, "cca", "cubic", "medley"))
    assert "buffer=50p, cca=cubic → medley" in table and "differs" in table
    lines = as_csv(rows(SWEEP)).splitlines()
    assert lines[0].startswith("param.cca,param.buffer,metric,unit,n,mean,t_low") and len(lines) == 5
    assert render([]) == "no numbers: no run is complete and valid\n"
    assert "(one observation)" in render(rows([run(1, 0.5, cca="cubic")]))


def test_a_metric_that_is_equal_in_runs_that_differ_has_no_interval_of_no_width() -> None:
    """A full buffer is as long in every run; ± 0 would say that no seed could ever change it."""
    numbers = [{"queue_max_packets": 40, "utilization": 0.5 + seed / 10} for seed in (1, 2)]
    runs = [dataclasses.replace(run(seed, 0.5, cca="a"), metrics=those) for seed, those in enumerate(numbers, 1)]
    text = render(rows(runs))
    assert "(equal in each)" in next(line for line in text.splitlines() if "queue_max" in line)
    assert "± 0.6" in next(line for line in text.splitlines() if "utilization" in line)


def test_runs_whose_seeds_change_nothing_are_one_observation() -> None:
    copies = Cell({}, tuple(run(seed, 0.8264) for seed in (1, 2, 3)))
    assert copies.copies == 3 and copies.values("utilization") == [0.8264]
    mean = copies.estimate("utilization")
    assert mean is not None and (mean.n, mean.t_interval) == (1, None)
    differing = Cell({}, (run(1, 0.8264), run(2, 0.8265)))
    assert differing.copies == 0 and len(differing.values("utilization")) == 2
    assert Cell({}, (run(1, 0.8264),)).copies == 0


def test_a_comparison_of_identical_runs_says_nothing_about_a_difference() -> None:
    runs = [run(seed, value, cca=cca) for cca, value in (("reno", 0.8), ("cubic", 0.9)) for seed in (1, 2, 3)]
    [row] = paired_rows(runs, "cca", "reno", "cubic")
    assert (row["n"], row["copies"], row["differs"]) == (1, 3, None)
    assert "differs" not in render([row]) and "3 identical runs" in render([row])
    random = [*runs[:3], *(run(seed, 0.9 + seed / 100, cca="cubic") for seed in (1, 2, 3))]
    [row] = paired_rows(random, "cca", "reno", "cubic")
    assert (row["n"], row["copies"], row["differs"]) == (3, 0, True)
