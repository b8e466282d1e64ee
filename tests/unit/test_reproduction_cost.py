# SPDX-License-Identifier: Apache-2.0
"""What one run of each experiment took: chosen, recorded, and used for what is missing."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from analysis.errors import ResultsError
from base.paths import ROOT
from benchmarks import reproduction_cost
from plan.model import Plan
from testbed.experiments import prepare
from testbed.reproduction import costs
from testbed.reproduction.bindings import Bound
from testbed.reproduction.costs import Measured

SWEPT = ROOT / "experiments/afifi2014/fig41-short.yml", ROOT / "experiments/yu2009/fig2.3-2.8-short.yml"
TEN = Measured(virtual_s=100, gbit=10, wall_s=costs.START_S + 5, kept_bytes=2e6)


def bound(file: Path) -> Bound:
    prepared = prepare(file)
    return Bound(file, prepared.experiment, prepared.document, {}, {})


def test_of_each_file_one_cell_is_timed_that_only_chooses() -> None:
    alone, swept = (reproduction_cost.sample(bound(file)) for file in SWEPT)
    assert alone.only == ""
    assert swept.only == "cca=liss,rate=20mbit,delay=50ms,gap=exponential(5s),life=pareto(100s, 1.35)"


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    known = {"experiments/b.yml": TEN, "experiments/a.yml": Measured(1, 0.5, 2, 3)}
    costs.write(tmp_path, known)
    assert costs.read(tmp_path) == known
    assert [line[1:21] for line in (tmp_path / costs.SPEEDS).read_text().splitlines()[1:3]] == [
        '"experiments/a.yml":',
        '"experiments/b.yml":',
    ]
    assert costs.read(tmp_path / "nowhere") == {}


ZERO = '{"a": {"virtual_s": 0, "gbit": 1, "wall_s": 1, "kept_bytes": 1}}'


@pytest.mark.parametrize(
    "text",
    ["[]", '{"a": 1}', '{"a": {"virtual_s": 1}}', '{"a": {"virtual_s": "many"}}', "{", ZERO, ZERO.replace("0", "NaN")],
)
def test_what_is_no_record_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / costs.SPEEDS).write_text(text)
    with pytest.raises(ResultsError, match=r"speeds\.json: not a record of speeds"):
        costs.read(tmp_path)


def test_a_recorded_run_tells_time_and_disk_of_another() -> None:
    """By hand: 10 Gbit in 5 s beside the start are 2 a second; a run of three times its length takes 15 s and 6 MB."""
    plan = cast(
        Plan,
        SimpleNamespace(
            duration_s=300.0, network=SimpleNamespace(links=(), bottleneck=None), captures=(), tcp_probe=False
        ),
    )
    gbit = costs.gbit_of(plan)
    cost = costs.of_plans([plan], None, TEN.speed, TEN.bytes_per_s)
    assert cost.cpu_s == pytest.approx(costs.START_S + gbit / 2)
    assert cost.disk_bytes == pytest.approx(6e6)


def test_a_machine_is_as_fast_as_with_what_it_has_run() -> None:
    """Ten Gbit in 5 s beside the start were 2 a second there; runs of little more than a start tell nothing."""
    short = Measured(100, 10, costs.START_S + 0.1, 2e6)
    pairs = [(1.0, TEN)] * costs.ENOUGH_EXPERIMENTS
    assert costs.pace([*pairs, (None, TEN), (9.0, None), *[(1.0, short)] * 9]) == 0.5
    assert costs.pace(pairs[1:]) == 1.0, "too few tell nothing"
