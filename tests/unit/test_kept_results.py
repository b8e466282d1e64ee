# SPDX-License-Identifier: Apache-2.0
"""Results that tests share over runs of the tests: made again as soon as anything that decides them has changed, and bounded."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests import kept_results, lab


@pytest.fixture
def executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Texts of the experiments that were executed, by a stand-in that writes them into a run's file; the cache is empty."""
    texts: list[str] = []

    def execute(folder: Path, text: str, *_: str, program: str) -> Path:
        texts.append(text)
        assert text != "fails"
        run = folder / "results/zeta/run"
        run.mkdir(parents=True)
        (run / "raw").symlink_to("elsewhere")
        (run / "run.json").write_text(text)
        return run.parent

    monkeypatch.setattr(lab, "execute", execute)
    monkeypatch.setattr(kept_results, "cache_dir", lambda: tmp_path / "cache")
    monkeypatch.setattr(kept_results, "code", lambda: "code")
    return texts


def made(folder: Path, text: str, *arguments: str) -> str:
    folder.mkdir()
    place = kept_results.results(folder, text, *arguments)
    assert place == folder / "results/zeta" and os.readlink(place / "run/raw") == "elsewhere"
    return (place / "run/run.json").read_text()


def test_an_experiment_is_executed_once(tmp_path: Path, executed: list[str]) -> None:
    assert [made(tmp_path / name, "one") for name in ("a", "b", "c")] == ["one"] * 3
    assert executed == ["one"]


def test_another_text_other_arguments_or_other_code_is_executed(
    tmp_path: Path, executed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path / "a", "one")
    made(tmp_path / "b", "two")
    made(tmp_path / "c", "one", "--only=cca=reno")
    monkeypatch.setattr(kept_results, "code", lambda: "changed")
    made(tmp_path / "d", "one")
    assert executed == ["one", "two", "one", "one"]


def test_all_are_executed_where_that_is_asked_for(
    tmp_path: Path, executed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made(tmp_path / "a", "one")
    monkeypatch.setenv(kept_results.FRESH, "1")
    made(tmp_path / "b", "one")
    assert executed == ["one", "one"]


def test_a_copy_is_the_test_s_own_and_a_failure_is_not_kept(tmp_path: Path, executed: list[str]) -> None:
    made(tmp_path / "a", "one")
    (tmp_path / "a/results/zeta/run/run.json").write_text("changed")
    assert made(tmp_path / "b", "one") == "one"
    for _ in range(2):
        with pytest.raises(AssertionError):
            kept_results.results(tmp_path, "fails")
    assert executed == ["one", "fails", "fails"]


NAMES = ("experiments/first", "experiments/raw/second", "experiments/third", "experiments/raw/fourth", "kernels/other")


def kept(cache: Path) -> list[str]:
    return [name for name in NAMES if (cache / name).is_dir()]


def test_what_was_not_used_for_longest_goes_first(tmp_path: Path) -> None:
    for number, name in enumerate(NAMES):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "data").write_bytes(bytes(100_000))
        os.utime(tmp_path / name, (time.time() - 1000 * (9 - number),) * 2)
    os.utime(tmp_path / "kernels/other", (0, 0))
    assert kept_results.forget(tmp_path, 10**9) == 0 and len(kept(tmp_path)) == 5
    os.utime(tmp_path / "experiments/first")  # used again
    assert kept_results.forget(tmp_path, 250_000) == 2
    assert kept(tmp_path) == ["experiments/first", "experiments/raw/fourth", "kernels/other"]
