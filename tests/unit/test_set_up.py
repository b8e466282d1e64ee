# SPDX-License-Identifier: Apache-2.0
"""`./warpbed test` sets up what the chosen tests need, and no more."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from base.paths import ROOT
from testbed.commands.test import ALL, AT_ONCE, NEEDS, NOT_QUICK, PARTS, SMALLEST, holds, parts_of
from tests import calculated, needs


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ([], ALL),
        (["-m", "real_host"], ALL),
        (["-k", "hosts"], ALL),
        (["tests"], ALL),
        (["tests/unit"], SMALLEST),
        (["-x", "tests/unit/test_set_up.py::test_the_lists_agree"], SMALLEST),
        (["tests/hosts/test_lab_host.py"], ALL),
        (["tests/kernels/test_spec_medley.py"], PARTS["guest"]),
        (["tests/kernels/test_stock_kernels.py"], ALL),
        (["tests/kernels"], ALL),
        (["tests/conftest.py"], ALL),
        (["tests/unit", "tests/guest/test_killing.py"], PARTS["guest"]),
        (["tests/store", "-k", "column"], PARTS["store"]),
        (["tests/unit/../hosts"], ALL),
    ],
)
def test_what_is_set_up_for_a_choice(arguments: list[str], parts: frozenset[str]) -> None:
    assert parts_of(arguments) == parts


@pytest.mark.parametrize("arguments", [[], ["tests/hosts"], ["-k", "x"]])
def test_quick_tests_need_packages_and_the_collector_only(arguments: list[str]) -> None:
    assert parts_of(arguments, is_quick=True) == SMALLEST


def test_folders_lie_in_memory_only_where_it_holds_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert holds(tmp_path, 1)
    assert not holds(tmp_path, 1 << 60)
    assert not holds(tmp_path / "absent", 1)
    asked = os.statvfs(tmp_path)
    monkeypatch.setattr(os, "statvfs", lambda place: os.statvfs_result((*asked[:8], os.ST_NOEXEC, *asked[9:])))
    assert not holds(tmp_path, 1)


def test_calculations_are_asked_again_when_what_they_read_changes() -> None:
    """A module at or below their layer, a catalogue, a table of constants; not what lies above them."""
    read = ["analysis/models/ho2008.py", "kernels/reference/medley.py", "schema/catalogue.py", "base/files.py"]
    read += ["experiments/ho2008/catalogue.yaml", "experiments/kato2012/costs.json", "kernels/series.json"]
    assert [name for name in read if not calculated.is_read(Path(name))] == []
    assert [name for name in read if not (ROOT / name).is_file()] == []
    assert not any(
        calculated.is_read(Path(name)) for name in ("testbed/cli.py", "docs/hosts.md", "experiments/quickstart.yml")
    )


def test_the_lists_agree() -> None:
    """Each folder named is there, each part is built by one play, and the markers are those that tests are given."""
    assert [name for name in [*PARTS, *needs.OF_FOLDERS] if not (ROOT / "tests" / name).is_dir()] == []
    assert sorted([*sum(AT_ONCE, ()), "packages", "programs"]) == sorted(ALL)
    given = {name for names in [*needs.OF_FIXTURES.values(), *needs.OF_FOLDERS.values()] for name in names}
    assert given <= set(NEEDS)
    assert sorted(NOT_QUICK) == sorted(needs.OF_FOLDERS)
    play = (ROOT / "playbooks/test_environment.yml").read_text()
    assert [part for part in ALL if f"'{part}' in test_parts" not in play] == []
