# SPDX-License-Identifier: Apache-2.0
"""Two commands that store the same run: the second one waits, says so, and not without end."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from benchmarks import store_lab
from benchmarks.store_lab import contents
from store import actions, connect, folder
from store.connect import connected
from store.errors import StoreError

pytestmark = pytest.mark.root


def test_a_run_that_another_command_stores_is_waited_for_but_not_without_end(
    database: store_lab.Database, made: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, *others = folder.find(made)
    row = folder.read(run).row
    monkeypatch.setattr(connect, "LOCK_TIMEOUT_S", 1)
    with connected("writer", database.url, autocommit=True) as other, other.transaction():
        other.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"{row.experiment}/{row.run}"])
        with pytest.raises(StoreError, match=f"1 of {1 + len(others)} run folders could not be stored"):
            actions.load(made, database.url, io.StringIO())
        said = capsys.readouterr().err
    assert f"{row.experiment}/{row.run}: waiting for another command that stores this run" in said
    assert "another command has not finished storing this run; is it stopped?" in said
    assert contents(database)["runs"] == len(others)
    assert actions.load(made, database.url, io.StringIO()) == 0
