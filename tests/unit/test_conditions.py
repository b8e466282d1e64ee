# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from pathlib import Path

import pytest

from base.errors import UsageError
from base.paths import ROOT
from kernels.build_key import patches_for
from kernels.conditions import lines_for


@pytest.mark.parametrize(
    ("series", "options"),
    [
        ("6.1", ["always", "early"]),
        ("6.2", ["always", "early"]),
        ("6.12", ["always", "between"]),
        ("7.2", ["always", "late"]),
    ],
)
def test_versions_are_compared_as_numbers(tmp_path: Path, series: str, options: list[str]) -> None:
    file = tmp_path / "series"
    file.write_text("# comment >=9\nalways\n\nearly <6.12 # why\nbetween >=6.12 <7.0\nlate >=7.0\n")
    assert [line.word for line in lines_for(file, series)] == options


def test_a_value_may_hold_blanks_and_hashes(tmp_path: Path) -> None:
    file = tmp_path / "um.required"
    file.write_text('CONFIG_A="fd:0 #1" >=6.1\n')
    assert [line.word for line in lines_for(file, "6.1")] == ['CONFIG_A="fd:0 #1"']


@pytest.mark.parametrize("condition", ["=6.1", ">6.1", "6.1", ">=x", ">= 6.1"])
def test_an_unknown_condition_is_an_error_that_names_file_and_line(tmp_path: Path, condition: str) -> None:
    file = tmp_path / "series"
    file.write_text(f"a.patch\nb.patch {condition}\n")
    with pytest.raises(UsageError, match=r"series:2: condition"):
        lines_for(file, "6.1")


@pytest.mark.parametrize("series", ["6.1", "6.12", "7.2"])
def test_every_patch_of_the_series_file_is_there(series: str) -> None:
    assert patches_for(series)
    for name in patches_for(series):
        assert (ROOT / "kernels/patches" / name).is_file()
