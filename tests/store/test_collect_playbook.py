# SPDX-License-Identifier: Apache-2.0
"""playbooks/collect.yml: files to records to store, of results made here and of a folder that came from another machine."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from benchmarks import store_lab
from store import debian_server
from tests import plays, recap


@pytest.fixture(scope="module")
def database(timescale: debian_server.Server) -> store_lab.Database:
    return store_lab.make(timescale, "collect_play")


def play(results: Path, database: store_lab.Database, **more: Any) -> str:
    return plays.run("collect", variables={"results": str(results)}, environment=database.environment, **more)


def stored(database: store_lab.Database, experiment: str) -> list[tuple[str, str, str, int]]:
    return database.rows(
        "SELECT r.host, r.verdict, r.run, (SELECT count(*) FROM acks a WHERE a.run_id = r.run_id) FROM runs r "
        f"WHERE r.experiment = '{experiment}' ORDER BY 1, 3"
    )


def of_a_lab(small: Path, folder: Path) -> Path:
    """The run as lab machines leave it: raw files and what was asked for; no records, no metrics, no verdict."""
    (run,) = [entry for entry in small.iterdir() if (entry / "run.json").is_file()]
    foreign = folder / "from the lab" / "moved" / run.name
    shutil.copytree(run, foreign)
    shutil.rmtree(foreign / "records")
    document = json.loads((foreign / "run.json").read_text())
    document.update(experiment="moved", host="lab", metrics={}, verdict=None)
    (foreign / "run.json").write_text(json.dumps(document))
    return foreign


def test_a_foreign_folder_gets_records_and_is_stored_and_a_second_play_changes_nothing(
    small: Path, database: store_lab.Database, tmp_path: Path
) -> None:
    foreign = of_a_lab(small, tmp_path)
    play(tmp_path / "from the lab", database)
    assert (foreign / "records/acks.parquet").is_file()
    ((host, verdict, run, acks),) = stored(database, "moved")
    assert (host, verdict, run) == ("lab", "valid", foreign.name)
    assert acks > 1000
    before = json.loads((foreign / "run.json").read_text())
    assert before["metrics"]["goodput_mbps"] > 10
    recap.assert_changes_nothing(play(tmp_path / "from the lab", database, counted=True))
    assert json.loads((foreign / "run.json").read_text()) == before
    assert stored(database, "moved") == [(host, verdict, run, acks)]


def test_a_folder_without_results_is_refused(database: store_lab.Database, tmp_path: Path) -> None:
    assert "no run.json here" in play(tmp_path, database, code=2)
