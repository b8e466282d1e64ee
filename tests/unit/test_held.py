# SPDX-License-Identifier: Apache-2.0
"""Costly tests that have passed are left out only while all that decides them is the same."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Literal

import pytest

from base.paths import ROOT
from tests import held
from tests.kept_results import FRESH

FILES = {
    "agent/hop.py": "a",
    "docs/hosts.md": "b",
    "docs/reproduction/yu2009.json": "b",
    "experiments/quickstart.yml": "c",
    "docs/algorithms/README.md": "b",
    "CHANGELOG.md": "d",
    "kernels/README.md": "d",
    "tests/lab.py": "e",
    "tests/hosts/test_vm_host.py": "f",
    "tests/hosts/test_campaign.py": "g",
    "tests/guest/test_tutorial.py": "h",
    "tests/guest/test_batching.py": "h",
    "tests/unit/test_lint.py": "i",
    "tests/style/test_ruff.py": "j",
}
VM, TUTORIAL = "tests/hosts/test_vm_host.py", "tests/guest/test_tutorial.py"
CAMPAIGN, BATCHING = "tests/hosts/test_campaign.py", "tests/guest/test_batching.py"
ALL = {VM, CAMPAIGN, TUTORIAL, BATCHING}
PASSED = f"{VM}::test_one_machine"


def changed(name: str) -> set[str]:
    """The files of tests that run again after a file of the checkout has changed."""
    before, after = held.keys(FILES, 1), held.keys({**FILES, name: "changed"}, 1)
    return {file for file in before if before[file] != after[file]}


def test_each_change_makes_those_run_again_that_could_notice_it() -> None:
    assert held.keys(FILES, 1).keys() == ALL, "quick ones, and linters, always run"
    assert changed("agent/hop.py") == changed("tests/lab.py") == ALL
    assert changed("docs/hosts.md") == changed("docs/reproduction/yu2009.json") == {TUTORIAL}
    assert changed("experiments/quickstart.yml") == {TUTORIAL, BATCHING}
    assert changed(VM) == {VM}
    assert changed("docs/algorithms/README.md") == {TUTORIAL}
    assert changed("CHANGELOG.md") == changed("kernels/README.md") == changed("tests/unit/test_lint.py") == set()
    assert not set(held.keys(FILES, 1).values()) & set(held.keys(FILES, 2).values()), "another machine"
    assert changed("agent/new.py") == ALL


def test_packages_are_told_with_state_and_version() -> None:
    (dpkg,) = (line for line in held.packages() if line.split()[1:2] == ["dpkg"])
    assert re.fullmatch(r"ii +dpkg \d+\.\S+", dpkg)


def test_where_a_run_puts_something_is_no_setting_and_all_others_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held, "_built", list)
    before = held.machine()
    monkeypatch.setenv("WARPBED_ARTIFACTS", "/elsewhere")
    monkeypatch.setenv("WARPBED_PYTEST", "another")
    assert held.machine() == before
    monkeypatch.setenv("WARPBED_STALL_S", "17")
    assert held.machine() != before


def report(
    phase: Literal["setup", "call", "teardown"],
    outcome: Literal["passed", "failed", "skipped"] = "passed",
    test: str = PASSED,
    why: Any = None,
) -> pytest.TestReport:
    return pytest.TestReport(test, (test.partition("::")[0], 1, "test"), {}, outcome, why, phase)


def test_what_passed_and_was_tidied_is_remembered_by_its_key(tmp_path: Path) -> None:
    memory = held.Memory(tmp_path, {VM: "key"})
    for phase in ("setup", "call"):
        memory.pytest_runtest_logreport(report(phase))
    assert memory.days() == {}, "its tidying may fail yet"
    memory.pytest_runtest_logreport(report("teardown"))
    assert held.Memory(tmp_path, {VM: "key"}).days().keys() == {PASSED}
    assert date.fromisoformat(memory.days()[PASSED]) <= datetime.now(UTC).date()
    assert held.Memory(tmp_path, {VM: "another"}).days() == {}
    assert held.Memory(tmp_path, {CAMPAIGN: "key"}).days() == {}


@pytest.mark.parametrize(
    "phases",
    [
        [("setup", "failed"), ("teardown", "passed")],
        [("setup", "passed"), ("call", "failed"), ("teardown", "passed")],
        [("setup", "passed"), ("call", "passed"), ("teardown", "failed")],
        [("call", "passed"), ("call", "failed"), ("teardown", "passed")],
    ],
)
def test_what_failed_is_not(tmp_path: Path, phases: list[tuple[Any, Any]]) -> None:
    memory = held.Memory(tmp_path, {VM: "key"})
    for phase, outcome in phases:
        memory.pytest_runtest_logreport(report(phase, outcome))
    assert memory.days() == {} and held.Memory(tmp_path, {VM: "key"}).days() == {}


def test_a_test_that_has_passed_and_fails_now_is_forgotten(tmp_path: Path) -> None:
    memory = held.Memory(tmp_path, {VM: "key"})
    for phase in ("call", "teardown"):
        memory.pytest_runtest_logreport(report(phase))
    again = held.Memory(tmp_path, {VM: "key"})
    (day,) = again.days().values()
    held_before = ("file", 1, f"Skipped: {held.REASON.format(day=day)}")
    again.pytest_runtest_logreport(report("setup", "skipped", why=held_before))
    again.pytest_runtest_logreport(report("teardown"))
    assert [*again.days().values()] == [day] and held.Memory(tmp_path, {VM: "key"}).days(), "left out, as it is to be"
    again.pytest_runtest_logreport(report("call", "failed"))
    assert not again.days() and not held.Memory(tmp_path, {VM: "key"}).days()


def test_one_variable_makes_all_tests_run_and_what_passes_is_remembered_still(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FRESH, "1")
    memory = held.Memory(tmp_path, {VM: "key"})
    for phase in ("call", "teardown"):
        memory.pytest_runtest_logreport(report(phase))
    assert memory.days() == {}
    monkeypatch.delenv(FRESH)
    assert held.Memory(tmp_path, {VM: "key"}).days().keys() == {PASSED}


class Item:
    def __init__(self, nodeid: str) -> None:
        self.nodeid, self.markers = nodeid, list[pytest.MarkDecorator]()

    def add_marker(self, marker: pytest.MarkDecorator) -> None:
        self.markers.append(marker)


def test_a_file_is_left_out_once_all_of_its_tests_have_passed_or_were_skipped() -> None:
    """Tests use what those before them have made: a module's build, a machine's state."""
    another, skipped, tutorial = f"{VM}::test_another", f"{VM}::test_needs_kvm", f"{TUTORIAL}::test_it"
    days = {PASSED: "2026-11-30", skipped: "", tutorial: "2026-11-29"}
    items = [Item(name) for name in (PASSED, another, skipped, tutorial)]
    assert held.leave_out(items, days) == {TUTORIAL}
    assert [len(item.markers) for item in items] == [0, 0, 0, 1]
    items = [Item(name) for name in (PASSED, another, skipped)]
    assert held.leave_out(items, {**days, another: "2026-11-30"}) == {VM}
    assert [len(item.markers) for item in items] == [1, 1, 0], "what was skipped looks again whether it can run"


def test_a_test_that_is_left_out_says_when_it_passed_and_how_to_run_it() -> None:
    item = Item(PASSED)
    held.leave_out([item], {PASSED: "2026-11-30"})
    reason = item.markers[0].kwargs["reason"]
    assert "2026-11-30" in reason and f"{FRESH}=1" in reason
    assert held.is_held(report("setup", "skipped", why=("file", 1, f"Skipped: {reason}")))
    assert not held.is_held(report("setup", "skipped", why=("file", 1, "Skipped: no QEMU here")))
    assert not held.is_held(report("call"))


@pytest.mark.parametrize("phase", ["setup", "call"])
def test_that_a_test_was_skipped_is_remembered_as_that(tmp_path: Path, phase: Any) -> None:
    memory = held.Memory(tmp_path, {VM: "key"})
    memory.pytest_runtest_logreport(report(phase, "skipped", why=("file", 1, "Skipped: no QEMU here")))
    memory.pytest_runtest_logreport(report("teardown"))
    assert held.Memory(tmp_path, {VM: "key"}).days() == {PASSED: ""}


def test_in_a_copy_without_its_history_nothing_is_remembered_and_all_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.remembered.ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert held.memory(Config("tests")) is None  # type: ignore[arg-type]


class Config:
    """What is read of pytest's: the chosen tests."""

    def __init__(self, *arguments: str, marker: str = "") -> None:
        self.args, self.option = arguments, type("Option", (), {"markexpr": marker})


def test_only_tests_that_cost_something_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held, "machine", list)

    def remembers(*arguments: str, marker: str = "") -> bool:
        return held.memory(Config(*arguments, marker=marker)) is not None  # type: ignore[arg-type]

    assert remembers("tests") and remembers(f"{VM}::test_one_machine") and remembers("tests/unit", "tests/hosts")
    assert not remembers("tests/unit/test_held.py") and not remembers("tests/style", "tests/unit")
    assert not remembers("tests", marker="not (slow)")


def test_what_is_said_to_be_read_by_no_test_names_folders_and_files_that_are_there() -> None:
    assert [name for name in held.NO_PART if not (ROOT / "tests" / name).is_dir() and not (ROOT / name).is_file()] == []
    assert [name for names in held.NO_PART.values() for name in names if not (ROOT / name).is_dir()] == []


def test_each_file_that_names_documentation_depends_on_it() -> None:
    folders = [folder for folder, unread in held.NO_PART.items() if "docs" in unread]
    files = [file for folder in folders for file in (ROOT / "tests" / folder).glob("test_*.py")]
    naming = {f"tests/{file.parent.name}/{file.name}" for file in files if '"docs' in file.read_text()}
    assert {TUTORIAL, "tests/playbooks/test_inventories.py"} <= naming <= held.NO_PART.keys()
