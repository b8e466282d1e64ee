# SPDX-License-Identifier: Apache-2.0
"""A results folder, also one from somebody else: nothing of the user's is touched, nothing is half there."""

from __future__ import annotations

import io
import json
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from base.errors import UsageError
from base.files import exchange_folders, folder_aside, replace_text
from base.paths import ROOT
from plan.model import Plan
from testbed import results as published
from testbed.progress import Progress
from testbed.results import ASIDE, Results, purge_aside
from testbed.runner import Job, Summary, missing
from testbed.runs import PlannedRun

LEFT = "0123456789abcdef" * 2


def left_behind(base: Path, name: str = LEFT) -> Path:
    """What a killed process leaves: a folder, and its lock file that nobody holds."""
    folder = base / ASIDE / name
    (folder / "raw").mkdir(parents=True)
    (base / ASIDE / f"{name}.lock").touch()
    return folder


def test_what_killed_processes_left_aside_is_removed(tmp_path: Path) -> None:
    folder = left_behind(tmp_path)
    folder.with_name(f"{LEFT}.sender").mkdir()
    assert purge_aside(tmp_path) == 2
    assert not (tmp_path / ASIDE).exists()


def test_a_link_in_the_place_of_the_folder_aside_is_not_followed(tmp_path: Path) -> None:
    home, base = tmp_path / "home", tmp_path / "results"
    (home / "thesis").mkdir(parents=True)
    (home / "thesis/chapter1.tex").write_text("years of work")
    (home / "notes.lock").touch()
    (home / LEFT).mkdir()  # a name as ours are, in another place
    (home / f"{LEFT}.lock").touch()
    base.mkdir()
    (base / ASIDE).symlink_to("../home")
    assert purge_aside(base) == 0
    assert (home / "thesis/chapter1.tex").is_file() and (home / "notes.lock").is_file()
    assert (home / LEFT).is_dir() and (home / f"{LEFT}.lock").is_file()
    with pytest.raises(UsageError, match="is a link"), Results(base, "e").aside():
        pass


def test_links_and_other_names_inside_the_folder_aside_are_left_alone(tmp_path: Path) -> None:
    home, base = tmp_path / "home", tmp_path / "results"
    (home / "raw").mkdir(parents=True)
    (base / ASIDE / "thesis").mkdir(parents=True)
    (base / ASIDE / "thesis.lock").touch()
    (base / ASIDE / LEFT).symlink_to(home)
    (base / ASIDE / f"{LEFT}.lock").touch()
    (base / ASIDE / f"{'f' * 32}.lock").symlink_to(home / "precious")
    (home / "precious").write_text("x")
    assert purge_aside(base) == 0
    assert (home / "raw").is_dir() and (base / ASIDE / "thesis").is_dir() and (home / "precious").read_text() == "x"


def test_a_folder_in_use_is_left_alone(tmp_path: Path) -> None:
    with Results(tmp_path, "e").aside() as folder:
        assert purge_aside(tmp_path) == 0
        assert folder.is_dir()
    assert not folder.exists() and not (tmp_path / ASIDE).exists()


def test_making_and_purging_side_by_side_lose_nothing(tmp_path: Path) -> None:
    """Two commands in one results folder: the one that purges never takes the other's lock or folder."""
    ended, problems = threading.Event(), list[str]()

    def purge() -> None:
        while not ended.is_set():
            purge_aside(tmp_path)

    purgers = [threading.Thread(target=purge) for _ in range(2)]
    for purger in purgers:
        purger.start()
    try:
        for _ in range(300):
            with Results(tmp_path, "e").aside() as folder:
                (folder / "raw").mkdir()
                if not (folder / "raw").is_dir() or not folder.with_suffix(".lock").is_file():
                    problems.append(folder.name)
    finally:
        ended.set()
        for purger in purgers:
            purger.join()
    assert problems == []


def test_a_lock_that_was_removed_while_it_was_waited_for_does_not_count(tmp_path: Path) -> None:
    """The purge takes and removes a new lock file between its making and its locking: the maker makes another."""
    first: list[Path] = []
    real = os.open

    def open_and_lose(path: os.PathLike[str] | str, *arguments: int, dir_fd: int | None = None) -> int:
        descriptor = real(path, *arguments, dir_fd=dir_fd)
        if str(path).endswith(".lock") and not first:
            first.append(Path(path))
            Path(path).unlink()
        return descriptor

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "open", open_and_lose)
        with Results(tmp_path, "e").aside() as folder:
            assert first and folder.with_suffix(".lock").is_file()
            assert purge_aside(tmp_path) == 0


@pytest.mark.parametrize("content", ["", "{", "[]", '"text"'])
def test_a_run_counts_as_done_only_with_a_whole_run_json(tmp_path: Path, content: str) -> None:
    results = Results(tmp_path, "e")
    (tmp_path / "e/r").mkdir(parents=True)
    (tmp_path / "e/r/run.json").write_text(content)
    assert not results.is_complete("r")
    (tmp_path / "e/r/run.json").write_text(json.dumps({"format": 1}))
    assert results.is_complete("r")


def test_everything_of_a_run_is_on_the_disk_before_it_has_its_name(tmp_path: Path) -> None:
    """The order of calls: each file, then its folders, then the rename, then the folder that holds the new name."""
    results, calls = Results(tmp_path, "e"), list[str]()
    sync, rename = os.fsync, os.rename

    def synced(descriptor: int) -> None:
        calls.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
        sync(descriptor)

    def renamed(old: Path, new: Path) -> None:
        calls.append(f"rename {new.name}")
        rename(old, new)

    with pytest.MonkeyPatch.context() as patch, results.aside() as folder:
        (folder / "raw").mkdir()
        (folder / "raw/a.pcap").write_bytes(b"x")
        (folder / "run.json").write_text("{}")
        patch.setattr(os, "fsync", synced)
        patch.setattr(os, "rename", renamed)
        results.publish(folder, "r")
    at = calls.index("rename r")
    assert {"a.pcap", "run.json", "raw"} <= set(calls[:at]) and calls[at + 1 :] == ["e"]


def test_a_file_is_replaced_and_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "bashrc").write_text("mine")
    (tmp_path / "report.html").symlink_to("bashrc")
    for number in range(1, 50):
        (tmp_path / f".report.html.{number}").symlink_to("bashrc")
    replace_text(tmp_path / "report.html", "<!doctype html>")
    assert (tmp_path / "bashrc").read_text() == "mine"
    assert (tmp_path / "report.html").read_text() == "<!doctype html>" and not (tmp_path / "report.html").is_symlink()
    assert [name for name in os.listdir(tmp_path) if len(name) > 20] == []


def test_a_private_file_is_private_from_its_first_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modes: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda file: modes.append(os.fstat(file).st_mode & 0o777))
    before = os.umask(0o022)
    try:
        replace_text(tmp_path / "password", "secret", 0o600)
    finally:
        os.umask(before)
    assert modes[0] == 0o600 == (tmp_path / "password").stat().st_mode & 0o777


def test_two_folders_change_names_in_one_step(tmp_path: Path) -> None:
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    exchange_folders(tmp_path / "new", tmp_path / "old")
    assert os.listdir(tmp_path / "old") == ["new"] and os.listdir(tmp_path / "new") == ["old"]
    with pytest.raises(OSError, match="No such file"):
        exchange_folders(tmp_path / "new", tmp_path / "missing")


FRESH = {
    "testbed/runner.py": "a folder aside, which was made a moment ago under a name that nobody can guess",
    "testbed/campaign/publish.py": "as in the runner",
    "testbed/campaign/pack.py": "this user's cache",
    "testbed/bisection/history.py": "this user's cache, a new folder",
    "testbed/bundle/unpack.py": "a new file, opened with O_EXCL and O_NOFOLLOW",
    "testbed/bundle/write.py": "an entry of an archive",
    "testbed/collecting.py": "/proc",
    "testbed/commands/campaign.py": "/dev/null",
    "testbed/engine/conductor.py": "a name that nobody can guess",
    "testbed/engine/store.py": "a new temporary folder",
    "testbed/engine/stub.py": "this user's cache",
    "testbed/engine/supplies.py": "a new temporary folder",
    "testbed/new_algorithm.py": "a new file of the checkout, opened with x",
    "testbed/progress.py": "the terminal",
    "testbed/results.py": "a lock, opened with O_NOFOLLOW",
    "store/debian_server.py": "the database server's own folder",
}
"""Where files are written plainly, and why no link can lie there."""


@pytest.mark.parametrize("package", ["analysis", "store", "testbed"])
def test_results_are_written_in_the_one_way_that_follows_no_link(package: str) -> None:
    """Or a report, a table or a page in somebody else's results folder writes over the user's files."""
    plain = re.compile(
        r"\.write_(text|bytes)\(|savefig\((?!file,|out,)|\.touch\(|\bopen\([^\n]*[\"'][rb]?[awx][bt+]*[\"']|[\"']r[bt]?\+[bt]?[\"']"
    )
    writers = {str(file.relative_to(ROOT)) for file in (ROOT / package).rglob("*.py") if plain.search(file.read_text())}
    assert writers <= FRESH.keys()


def test_what_a_killed_process_left_of_a_file_goes_with_the_next_that_writes_it(tmp_path: Path) -> None:
    target = tmp_path / "page.svg"
    left = tmp_path / ".page.svg.0123456789abcdef"
    mine = [tmp_path / name for name in (".page.svg.mine", "page.svg.0123456789abcdef", ".other.svg.0123456789abcdef")]
    for file in (left, *mine):
        file.write_text("x")
    link = tmp_path / ".page.svg.fedcba9876543210"
    link.symlink_to(mine[0])
    replace_text(target, "new")
    assert not left.exists() and all(file.read_text() == "x" for file in mine) and link.is_symlink()


def test_what_others_are_making_is_left_to_them(tmp_path: Path) -> None:
    """Forty writers of one file at once: none loses its own to another one's tidying."""
    errors: list[BaseException] = []

    def write(number: int) -> None:
        try:
            for _ in range(20):
                replace_text(tmp_path / "page.svg", str(number))
                with folder_aside(tmp_path, "records") as fresh:
                    (fresh / "a").write_text(str(number))
                    assert (fresh / "a").read_text() == str(number)
        except BaseException as error:  # noqa: BLE001 — shown below
            errors.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert [file.name for file in tmp_path.iterdir()] == ["page.svg"]


def test_a_failed_run_is_kept_without_what_its_collection_left(tmp_path: Path) -> None:
    results = Results(tmp_path, "demo")
    with results.aside() as folder:
        (folder / "raw").mkdir()
        (folder / f".records.{LEFT[:16]}").mkdir()
        kept = results.publish_failed(folder, "s1")
    assert [place.name for place in kept.iterdir()] == ["raw"]


def broken(results: Results, content: str | None) -> Path:
    (results.path("s1") / "raw").mkdir(parents=True)
    (results.path("s1") / "raw/a.pcap").write_text("the only copy")
    if content is not None:
        (results.path("s1") / "run.json").write_text(content)
    return results.path("s1")


@pytest.mark.parametrize("content", [None, "", "{", "[]", "[" * 100_000])
def test_what_lies_in_the_place_of_a_run_is_kept_and_the_run_gets_its_name(tmp_path: Path, content: str | None) -> None:
    """It was made anew each time, and refused each time as a folder "without run.json"."""
    results = Results(tmp_path, "demo")
    broken(results, content)
    (results.folder / "s1.failed-1").mkdir()
    (results.folder / "s1.failed-2").symlink_to("nowhere")
    with results.aside() as folder:
        (folder / "run.json").write_text("{}")
        assert results.publish(folder, "s1") == results.path("s1")
    assert results.is_complete("s1")
    assert (results.folder / "s1.failed-3/raw/a.pcap").read_text() == "the only copy"
    assert results.set_aside("s1") is None and results.set_aside("s2") is None


@pytest.mark.parametrize("make", [Path.touch, lambda place: place.symlink_to("elsewhere")], ids=["file", "link"])
def test_a_run_s_place_may_even_be_taken_by_a_file_or_a_link(tmp_path: Path, make: Callable[[Path], None]) -> None:
    results = Results(tmp_path, "demo")
    results.folder.mkdir()
    make(results.path("s1"))
    with results.aside() as folder:
        (folder / "run.json").write_text("{}")
        results.publish(folder, "s1")
    assert results.is_complete("s1") and os.path.lexists(results.folder / "s1.failed-1")


def test_the_run_of_a_faster_process_stays(tmp_path: Path) -> None:
    results = Results(tmp_path, "demo")
    broken(results, '{"format": 1}')
    with results.aside() as folder:
        (folder / "run.json").write_text("{}")
        assert results.publish(folder, "s1") == results.path("s1")
    assert (results.path("s1") / "run.json").read_text() == '{"format": 1}'
    assert [place.name for place in results.folder.iterdir()] == ["s1"]


def test_a_run_that_cannot_be_looked_into_is_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk with errors, or another user's run: it may be whole, so it keeps its name, and no hours go into another."""
    results, job = (
        Results(tmp_path, "demo"),
        Job(cast(PlannedRun, None), cast(Plan, SimpleNamespace(duration_s=1.0)), "s1"),
    )
    broken(results, "{}")

    def denied(file: Path) -> Any:
        raise PermissionError(13, "Permission denied", str(file))

    with monkeypatch.context() as patch:
        patch.setattr(published, "small_json", denied)
        summary, events = Summary(), list[dict[str, Any]]()
        assert missing(results, [job], summary, events.append) == []
    assert "let your user read it, or move" in summary.failed["s1"] and [event["event"] for event in events] == [
        "failed"
    ]
    assert results.is_complete("s1")


def test_what_is_in_the_way_is_told_before_the_run_is_made(tmp_path: Path) -> None:
    results, job = (
        Results(tmp_path, "demo"),
        Job(cast(PlannedRun, None), cast(Plan, SimpleNamespace(duration_s=1.0)), "s1"),
    )
    broken(results, "{")
    summary, words = Summary(), io.StringIO()
    assert missing(results, [job], summary, Progress(1, 1.0, words, None).event) == [job]
    assert words.getvalue() == (
        "s1: what lay in its place is no complete run (no readable run.json) and is kept as "
        f"{results.folder / 's1.failed-1'}\n"
    )
    assert summary.failed == {} and summary.present == 0
