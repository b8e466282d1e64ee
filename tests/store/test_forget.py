# SPDX-License-Identifier: Apache-2.0
"""Runs that are forgotten: their rows go, their files stay, and the disk has its space again."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import store_lab
from benchmarks.make_results import Case
from benchmarks.store_lab import contents, load
from store import actions, folder
from store.errors import StoreUsageError

pytestmark = pytest.mark.root


def test_forget_and_prune_remove_rows_not_files(database: store_lab.Database, made: Path) -> None:
    load(database, made)
    assert actions.forget(database.url, "quickstart", folder.find(made)[0].name) == 0
    assert contents(database)["runs"] == 3
    with pytest.raises(StoreUsageError, match="no run"):
        actions.forget(database.url, "nothing", None)
    database.rows("UPDATE runs SET ingested_at = now() - interval '10 days' WHERE run_id < 4 RETURNING 1", "writer")
    assert actions.prune(database.url, 7) == 0
    left = contents(database)
    assert left["runs"] == 1
    assert left["acks"] == database.rows("SELECT count(*) FROM acks WHERE run_id = 4")[0][0] > 0
    assert set(load(database, made)) == {"stored", "present"}
    with pytest.raises(StoreUsageError, match="from 1 on"):
        actions.prune(database.url, 0)


def test_forgetting_gives_the_space_back(
    database: store_lab.Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The other runs of the same chunk stay, row by row."""
    size = "SELECT pg_database_size(current_database())"
    load(database, store_lab.results(tmp_path / "before", 1.0, (Case("reno", 50, 1),)))
    actions.forget(database.url, "quickstart", None)
    (empty,) = database.rows(size)[0]  # with the chunks that the next runs go to
    results = store_lab.results(tmp_path, 20.0)
    load(database, results)
    (full,) = database.rows(size)[0]
    names = [run.name for run in folder.find(results)]
    (run_id,) = database.rows(f"SELECT run_id FROM runs WHERE run = '{names[-1]}'")[0]
    digest = f"SELECT count(*), sum(hashtext(acks::text)::bigint) FROM acks WHERE run_id = {run_id}"
    (kept,) = database.rows(digest)
    for name in names[:-1]:
        assert actions.forget(database.url, "quickstart", name) == 0
    (left,) = database.rows(size)[0]
    assert left - empty < 0.5 * (full - empty), "three of four runs are gone"
    assert database.rows(digest) == [kept] and kept[0] > 0
    assert actions.forget(database.url, "quickstart", None) == 0
    assert database.rows(size)[0][0] - empty < 0.1 * (full - empty), "half a megabyte is the database's own catalogue"
    assert "MB less" in capsys.readouterr().out


def test_a_writer_alone_forgets_and_says_where_the_space_stays(
    database: store_lab.Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    load(database, store_lab.results(tmp_path / "results", 1.0, (Case("reno", 50, 1),)))
    lines = [line for line in database.passwords.read_text().splitlines() if "warpbed_owner" not in line]
    writers = tmp_path / "pgpass"
    writers.write_text("\n".join(lines) + "\n")
    writers.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(writers))
    assert actions.forget(database.url, "quickstart", None) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("forgot 1 runs; their space is used by the next runs") and "warpbed_owner" in printed
