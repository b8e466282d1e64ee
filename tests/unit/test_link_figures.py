# SPDX-License-Identifier: Apache-2.0
"""The figures of docs/links.md: each has an experiment that is ready to run, a file, and a place on the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from base.paths import ROOT
from benchmarks.link_figures import WORDS, text_of
from testbed.experiments import prepare
from tests import lab

PAGE = (ROOT / "docs/links.md").read_text()


@pytest.mark.parametrize("name", WORDS)
def test_a_figures_runs_differ_in_what_its_legend_says(name: str, tmp_path: Path) -> None:
    prepared = prepare(lab.write(tmp_path, text_of(name)))
    word = WORDS[name]
    assert prepared.errors == []
    assert [run.params for run in prepared.runs] == [
        dict(zip(word.places, case, strict=True)) for case in word.cases.values()
    ]
    assert len({run.inputs("virtual").spec for run in prepared.runs}) == len(word.cases)


def test_every_figure_of_a_link_is_drawn_and_shown() -> None:
    files = {file.name for file in (ROOT / "docs/images").glob("link-*.svg")}
    assert files == {f"link-{name}.svg" for name in WORDS}
    assert [name for name in sorted(files) if f"(images/{name})" not in PAGE] == []
