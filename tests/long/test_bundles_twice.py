# SPDX-License-Identifier: Apache-2.0
"""Two bundles of the same results are the same bytes, figures included."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.results import load_experiment
from benchmarks.make_results import Case, make_results
from testbed.bundle.contents import Part
from testbed.bundle.write import write
from testbed.experiments import prepare
from tests import lab
from tests.few_figures import draw_few


def test_the_same_results_give_the_same_bytes_and_nothing_lies_beside_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw_few(monkeypatch)
    file = lab.write(tmp_path, lab.SMALL, "small.yml")
    cases = [Case("cubic", 40, 1), Case("reno", 40, 1)]
    folder = make_results(tmp_path / "results", cases, experiment="small", duration_s=4.0)
    part = Part("experiments/small.yml", prepare(file), load_experiment(folder), 0, folder)
    (tmp_path / "bundles").mkdir()
    for name in ("one.zip", "two.zip"):
        write(tmp_path / "bundles" / name, "Small", [part], captures=False, licence="CC0-1.0")
    one, two = sorted((tmp_path / "bundles").iterdir())
    assert one.read_bytes() == two.read_bytes()
    assert (one.name, two.name) == ("one.zip", "two.zip")
