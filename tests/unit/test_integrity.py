# SPDX-License-Identifier: Apache-2.0
"""A run's files are those that it was finished with, and its name is its folder's."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis import integrity
from analysis.results import load_run
from base.errors import UsageError
from benchmarks.make_results import Case, make_results
from store import folder as stored
from store.errors import StoreUsageError
from testbed.finish import finish


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A whole run with records and raw files, and their digests."""
    experiment = make_results(tmp_path, [Case("reno", 50, 1)], duration_s=2.0)
    (folder,) = experiment.iterdir()
    (folder / "raw").mkdir(exist_ok=True)
    (folder / "raw/s1-eth0.pcap").write_bytes(bytes(1000))
    document = json.loads((folder / "run.json").read_text())
    document[integrity.KEY] = integrity.digests(folder)
    (folder / "run.json").write_text(json.dumps(document))
    return folder


def shorten(run: Path) -> None:
    (run / "raw/s1-eth0.pcap").write_bytes(bytes(999))


def add(run: Path) -> None:
    (run / "raw/s2-eth0.pcap").write_bytes(b"")


def remove(run: Path) -> None:
    (run / "raw/s1-eth0.pcap").unlink()


def link(run: Path) -> None:
    """The same bytes, but not the run's own file."""
    (run / "raw/s1-eth0.pcap").rename(run.parent / "elsewhere")
    (run / "raw/s1-eth0.pcap").symlink_to(run.parent / "elsewhere")


def link_folder(run: Path) -> None:
    (run / "raw/more").symlink_to(run.parent)


def pipe(run: Path) -> None:
    os.mkfifo(run / "raw/s2-eth0.pcap")


CHANGES = [
    (shorten, "raw/s1-eth0.pcap: was changed"),
    (add, "raw/s2-eth0.pcap: was not there when the run was finished"),
    (remove, "raw/s1-eth0.pcap: has been removed"),
    (link, "raw/s1-eth0.pcap: was changed"),
    (link_folder, "raw/more: was not there"),
    (pipe, "raw/s2-eth0.pcap: was not there"),
]


@pytest.mark.parametrize(("change", "message"), CHANGES, ids=lambda value: getattr(value, "__name__", ""))
def test_a_raw_file_that_is_not_the_runs_is_refused_by_collect_and_by_the_store(
    run: Path, change: Callable[[Path], None], message: str
) -> None:
    assert integrity.problems(run, json.loads((run / "run.json").read_text())) == []
    stored.read(run)
    change(run)
    with pytest.raises(UsageError, match=message):
        finish(run)
    with pytest.raises(StoreUsageError, match=message):
        stored.read(run)


def test_a_changed_record_is_refused_by_the_store(run: Path) -> None:
    file = run / "records/flows.parquet"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    with pytest.raises(StoreUsageError, match=r"records/flows.parquet: was changed; .* ./warpbed collect"):
        stored.read(run)


def test_a_run_from_before_digests_were_kept_is_read_as_ever(run: Path) -> None:
    document = json.loads((run / "run.json").read_text())
    del document[integrity.KEY]
    (run / "run.json").write_text(json.dumps(document))
    shorten(run)
    assert stored.read(run).row.status == "complete"


@pytest.mark.parametrize("value", [[], "x", 7, None])
def test_digests_that_are_no_digests_are_told(run: Path, value: object) -> None:
    (message,) = integrity.problems(run, {integrity.KEY: value})
    assert message.startswith("run.json: digests is ")


def test_a_run_that_says_it_is_another_is_the_one_whose_folder_it_lies_in(run: Path) -> None:
    """It would replace the other one in the database and in reports."""
    document = json.loads((run / "run.json").read_text())
    document |= {"experiment": "thesis", "run": "the-important-one"}
    (run / "run.json").write_text(json.dumps(document))
    assert (load_run(run).experiment, load_run(run).run) == ("quickstart", run.name)
    row = stored.read(run).row
    assert (row.experiment, row.run) == ("quickstart", run.name)
