# SPDX-License-Identifier: Apache-2.0
"""`store load` of two runs: reading their files may fail, and every message to and from the database."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

from psycopg import sql

from benchmarks import store_lab
from store import actions, connect, debian_server, tables
from store.connect import connected
from testbed.cli import ended
from tests.faults.cases import Collect
from tests.faults.forks import LONGEST_S, forked, imitate


class StoreLoad:
    """The database is a real one, started once by this process. Nothing fails inside the server, which has its own crash tests."""

    database: store_lab.Database | None = None
    wanted: dict[str, tuple[int, ...]] = {}  # noqa: RUF012 — of the first load without a fault, for all repetitions

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.made = Collect(folder.with_name("unused"))
        self.made.made = folder.with_name("made")

    def prepare(self) -> None:
        if StoreLoad.database is None:
            StoreLoad.database = _database()
        self.made.folder = self.folder
        self.made.prepare()
        results = self.folder / "results"
        shutil.copytree(results / "demo", results / "demo2")
        if not StoreLoad.wanted:
            code, words = forked(self.work)
            if code:
                raise RuntimeError(f"a load without faults failed: {words}")
            StoreLoad.wanted = self._there()
        with connected("writer", StoreLoad.database.url, autocommit=True) as connection:
            for table in tables.tables():
                connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table.stored)))
            connection.execute("DELETE FROM runs")

    def work(self) -> int:
        assert StoreLoad.database is not None
        url = StoreLoad.database.url
        imitate(connect, "CONNECT_TIMEOUT_S", LONGEST_S)  # the database has no other user, but the machine may
        return ended(lambda: actions.load(self.folder / "results", url, sys.stdout))

    def check(self, whole: bool, settled: bool) -> list[str]:
        there = self._there()
        wrong = [
            f"{name} is half in the store: {rows}" for name, rows in there.items() if rows != self.wanted.get(name)
        ]
        if whole and there.keys() != self.wanted.keys():
            wrong.append(f"in the store are {sorted(there)}")
        return wrong

    @staticmethod
    def _there() -> dict[str, tuple[int, ...]]:
        """Of each run that the store has: the rows of each table."""
        assert StoreLoad.database is not None
        names = [table.stored for table in tables.tables()] + ["run_params", "run_metrics", "run_reasons"]
        counts = ", ".join(f'(SELECT count(*) FROM "{name}" t WHERE t.run_id = r.run_id)' for name in names)  # noqa: S608
        rows = StoreLoad.database.rows(f"SELECT r.experiment, {counts} FROM runs r")  # noqa: S608 — our own names
        return {str(row[0]): tuple(int(n) for n in row[1:]) for row in rows}


def _database() -> store_lab.Database:
    """A server that ends with this process; it has no part in the faults."""
    os.environ.pop("LD_PRELOAD", None)
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/var/tmp"))
    server = debian_server.start(folder, **store_lab.FAST)

    def end() -> None:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    return store_lab.make(server, "faults")
