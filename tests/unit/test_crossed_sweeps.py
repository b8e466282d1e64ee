# SPDX-License-Identifier: Apache-2.0
"""Sweeps whose factorial has some of the parameters and whose list the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from base.errors import SpecError
from testbed.experiments import prepare
from testbed.runs import count_runs
from tests import lab

SWEEP = """\
sweep:
  parameters: {cca: flows.*.cca, rate: topology.params.rate, buffer: topology.params.buffer}
  factorial: {cca: [reno, cubic, medley]}
  list:
    - {rate: 5mbit, buffer: 20p}
    - {rate: 10mbit, buffer: 40p}
repeats: 2
"""


def test_each_entry_goes_with_each_combination_of_the_others(tmp_path: Path) -> None:
    prepared = prepare(lab.write(tmp_path, lab.SMALL + SWEEP))
    assert len(prepared.runs) == 3 * 2 * 2 == count_runs(prepared.experiment)
    cells = [tuple(run.params.items()) for run in prepared.runs[::2]]
    assert cells == [
        (("cca", cca), ("rate", rate), ("buffer", buffer))
        for cca in ("reno", "cubic", "medley")
        for rate, buffer in (("5mbit", "20p"), ("10mbit", "40p"))
    ]
    for run in prepared.runs:
        assert run.experiment.topology.params["rate"] == run.params["rate"]
        assert run.experiment.flows[0].cca.name == run.params["cca"]


def test_it_has_the_runs_of_the_list_that_spells_it_out(tmp_path: Path) -> None:
    entries = [
        f"    - {{cca: {cca}, rate: {rate}, buffer: {buffer}}}\n"
        for cca in ("reno", "cubic", "medley")
        for rate, buffer in (("5mbit", "20p"), ("10mbit", "40p"))
    ]
    head = SWEEP.splitlines(keepends=True)[:2]
    (tmp_path / "whole").mkdir()
    whole = prepare(lab.write(tmp_path / "whole", lab.SMALL + "".join([*head, "  list:\n", *entries, "repeats: 2\n"])))
    crossed = prepare(lab.write(tmp_path, lab.SMALL + SWEEP))
    assert [(run.run_id("virtual", "k"), run.params, run.seed) for run in crossed.runs] == [
        (run.run_id("virtual", "k"), run.params, run.seed) for run in whole.runs
    ]


def test_a_factorial_of_all_parameters_is_not_crossed(tmp_path: Path) -> None:
    both = "factorial: {cca: [reno, cubic], rate: [5mbit], buffer: [20p]}"
    text = SWEEP.replace("factorial: {cca: [reno, cubic, medley]}", both).replace("{rate:", "{cca: bbr, rate:")
    prepared = prepare(lab.write(tmp_path, lab.SMALL + text))
    assert len(prepared.runs) == (2 + 2) * 2 == count_runs(prepared.experiment)


def test_paths_are_drawn_for_each_of_the_combinations(tmp_path: Path) -> None:
    drawn = "  drawn: {count: 5, seed: 3, around: {delay: {value: 20ms, factor: 2}}}\n"
    text = SWEEP.replace("params.buffer}\n", "params.buffer, delay: topology.params.delay}\n", 1)
    prepared = prepare(lab.write(tmp_path, lab.SMALL + text.replace("repeats", drawn + "repeats")))
    assert len(prepared.runs) == 3 * 2 * 5 * 2 == count_runs(prepared.experiment)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{rate: 5mbit, buffer: 20p}", "{rate: 5mbit}", "an entry of list has no value for buffer"),
        ("{rate: 5mbit, buffer: 20p}", "{cca: bbr, rate: 5mbit, buffer: 20p}", "cca: in factorial, which lacks others"),
        ("    - {rate: 5mbit, buffer: 20p}\n    - {rate: 10mbit, buffer: 40p}", "    []", "no values for buffer, rate"),
        ("{rate: 5mbit", "{rat: 5mbit", "did you mean rate?"),
    ],
)
def test_what_does_not_fit_together_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(SpecError) as caught:
        prepare(lab.write(tmp_path, lab.SMALL + SWEEP.replace(old, new)))
    assert message in str(caught.value)
