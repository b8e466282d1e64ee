# SPDX-License-Identifier: Apache-2.0
"""Paths drawn around a setting: within their bounds, the same for the same seed, and each with every combination of the others."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from base.errors import SpecError
from base.quantities import delay_ns, rate_bps
from schema.drawn import Drawn
from testbed.experiments import prepare
from testbed.runs import count_runs
from tests import lab


def drawn(**changes: Any) -> Drawn:
    around = {
        "rate": {"value": "10mbit", "factor": 3},
        "delay": {"value": "48ms", "factor": 2.0},
        "buffer": {"value": "50p", "factor": 3},
        "n": {"value": 4, "factor": 2},
        "loss": {"value": "2%", "factor": 2, "in": "bit-errors loss={} of=1014B"},
    }
    return Drawn.model_validate({"seed": 7, "around": around, **changes})


def test_values_lie_between_the_thesis_own_divided_and_multiplied_by_the_factor() -> None:
    """The bounds by hand, with the half of a third digit, or of a packet, that rounding moves."""
    for path in drawn(count=200).paths():
        assert 10e6 / 3 * 0.995 <= rate_bps(str(path["rate"])) <= 30e6 * 1.005
        assert 24e6 * 0.995 <= delay_ns(str(path["delay"])) <= 96e6 * 1.005
        assert 16 <= int(str(path["buffer"]).removesuffix("p")) <= 150
        assert path["n"] in range(2, 9) and isinstance(path["n"], int)
        share = str(path["loss"]).removeprefix("bit-errors loss=").removesuffix("% of=1014B")
        assert 0.995 <= float(share) <= 4.02


def test_logarithms_are_even() -> None:
    """Of 4000 draws as many lie below the thesis' value as above: five standard deviations of a fair coin are 158."""
    rates = [rate_bps(str(path["rate"])) for path in drawn(count=1000).paths()]
    assert abs(sum(rate < 10e6 for rate in rates) - 500) < 5 * math.sqrt(1000) / 2


def test_the_same_seed_draws_the_same_and_another_seed_something_else() -> None:
    assert drawn().paths() == drawn().paths()
    assert drawn().paths() != drawn(seed=8).paths()


def test_more_paths_and_other_parameters_change_none_of_those_before() -> None:
    first = drawn(count=3).paths()
    assert drawn(count=10).paths()[:3] == first
    alone = drawn(count=3, around={"rate": {"value": "10mbit", "factor": 3}}).paths()
    assert [path["rate"] for path in alone] == [path["rate"] for path in first]


SWEEP = """\
sweep:
  parameters: {cca: flows.*.cca, rate: topology.params.rate, buffer: topology.params.buffer}
  list: [{cca: reno}, {cca: cubic}]
  drawn: {count: 4, seed: 3, around: {rate: {value: 10mbit, factor: 2}, buffer: {value: 40p, factor: 2}}}
repeats: 2
"""


def test_each_path_goes_with_each_combination_of_the_others(tmp_path: Path) -> None:
    prepared = prepare(lab.write(tmp_path, lab.SMALL + SWEEP))
    assert len(prepared.runs) == 2 * 4 * 2 == count_runs(prepared.experiment)
    pairs = [(run.params["rate"], run.params["buffer"]) for run in prepared.runs]
    assert len(set(pairs)) == 4
    assert all(pairs.count(pair) == 4 for pair in pairs)
    for run in prepared.runs:
        assert run.experiment.topology.params["rate"] == run.params["rate"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("value: 10mbit", "value: fast", "write a number above 0, with its unit"),
        ("value: 10mbit", "value: 0mbit", "write a number above 0"),
        ("factor: 2}, buffer", "factor: 1}, buffer", "greater than 1"),
        ("{rate: {value", "{rat: {value", "did you mean rate?"),
        ("{cca: reno}", "{cca: reno, rate: 5mbit}", "rate: drawn, and given values as well"),
        ("[{cca: reno}, {cca: cubic}]", "[]", "a sweep needs factorial, list or drawn"),
        ("value: 40p", "value: 40p, in: text", "write {} once"),
        ("value: 40p", "value: 40q", "is not a buffer"),
    ],
)
def test_a_wrong_draw_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        prepare(lab.write(tmp_path, lab.SMALL + SWEEP.replace(old, new)))
    assert message in str(caught.value)
