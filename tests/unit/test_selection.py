# SPDX-License-Identifier: Apache-2.0
"""`--only` chooses runs by their parameters."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from base.errors import UsageError
from testbed.selection import select

LIVES = ("pareto(100s, 1.35)", "pareto(100s, 1.05)")
RUNS: list[Any] = [
    SimpleNamespace(params={"cca": cca, "life": life}, seed=seed)
    for cca, life, seed in product(("reno", "liss", "iss"), LIVES, (1, 2))
]


@pytest.mark.parametrize(
    ("expression", "chosen"),
    [
        ("", {(cca, life, seed) for cca in ("reno", "liss", "iss") for life in LIVES for seed in (1, 2)}),
        ("cca=reno", {("reno", life, seed) for life in LIVES for seed in (1, 2)}),
        ("cca=liss|iss,seed=2", {(cca, life, 2) for cca in ("liss", "iss") for life in LIVES}),
        (f"cca!=reno|iss, life={LIVES[1]}, seed=1", {("liss", LIVES[1], 1)}),
        (f"life={LIVES[0]}|{LIVES[1]},cca=iss,seed=1", {("iss", life, 1) for life in LIVES}),
        (",cca=reno,,seed=1,", {("reno", life, 1) for life in LIVES}),
    ],
)
def test_runs_that_match_every_part_are_chosen(expression: str, chosen: set[tuple[str, str, int]]) -> None:
    assert {(run.params["cca"], run.params["life"], run.seed) for run in select(RUNS, expression)} == chosen


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("cca", "--only cca: write name=value, name=value|value or name!=value"),
        ("cc=reno", "no parameter 'cc'; did you mean cca?"),
        ("cca=ren", "no run has cca ren; did you mean reno?"),
        ("life=pareto(100s, 1.3)", "no run has life pareto(100s, 1.3); did you mean pareto(100s, 1.35)?"),
        ("life=pareto(100s", "no run has life pareto(100s; did you mean"),
        ("seed=3", "no run has seed 3"),
    ],
)
def test_what_no_run_has_is_refused_with_what_is_near(expression: str, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        select(RUNS, expression)
    assert message in str(refused.value)
