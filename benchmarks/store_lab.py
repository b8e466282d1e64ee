# SPDX-License-Identifier: Apache-2.0
"""A real TimescaleDB for tests, and results to put into it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psycopg

from benchmarks.make_results import START_NS, Case, make_results
from collectors import records
from store import debian_server, folder, ingest, migrate, tables
from store.connect import connected

# The tests kill the server, never the machine.
FAST = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "max_parallel_workers_per_gather": "0",
}


@dataclass(frozen=True)
class Database:
    server: debian_server.Server
    passwords: Path
    name: str

    @property
    def url(self) -> str:
        return f"postgresql:///{self.name}?host={self.server.folder}"

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "WARPBED_DATABASE": self.url, "PGPASSFILE": str(self.passwords)}

    def rows(self, query: str, role: str = "reader") -> list[Any]:
        with connected(role, self.url, autocommit=True) as connection:  # type: ignore[arg-type]
            cursor = connection.execute(query)
            return cursor.fetchall() if cursor.description else []


def make(server: debian_server.Server, name: str) -> Database:
    """A new database with roles and tables on a server."""
    passwords = server.folder / "pgpass"
    known = {role: f"of-{role}" for role in migrate.ROLES}
    passwords.write_text(
        "".join(f"*:*:*:{role}:{word}\n" for role, word in {**known, "postgres": server.password}.items())
    )
    passwords.chmod(0o600)
    os.environ["PGPASSFILE"] = str(passwords)
    with admin(server, "postgres") as connection:
        migrate.init(connection, name, known)
    with admin(server, name) as connection:
        migrate.extend(connection)
    database = Database(server, passwords, name)
    with connected("owner", database.url, autocommit=True) as connection:
        migrate.migrate(connection)
    return database


@contextmanager
def admin(server: debian_server.Server, name: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(
        server.url, user="postgres", dbname=name, password=server.password, autocommit=True
    ) as connection:
        yield connection


def load(database: Database, path: Path) -> list[ingest.Outcome]:
    """Store all runs below a folder."""
    with connected("writer", database.url, autocommit=True) as connection:
        return [ingest.ingest(connection, folder.read(run))[0] for run in folder.find(path)]


def contents(database: Database) -> dict[str, int]:
    """Rows of each table, and runs."""
    return {table.name: database.rows(f'SELECT count(*) FROM "{table.name}"')[0][0] for table in tables.tables()} | {
        "runs": database.rows("SELECT count(*) FROM runs")[0][0]}  # fmt: skip


CASES = (Case("reno", 50, 1), Case("cubic", 50, 1), Case("cubic", 50, 2), Case("cubic", 250, 1, flows=2))


def results(
    folder: Path, duration_s: float = 20.0, cases: tuple[Case, ...] | None = None, *, experiment: str = "quickstart"
) -> Path:
    """An experiment's results with every kind of record, made without running anything."""
    folders = make_results(folder, cases or CASES, experiment=experiment, duration_s=duration_s)
    for run in sorted(folders.glob("*/run.json")):
        document = json.loads(run.read_text())
        if document["status"] == "complete":
            complete(run.parent, document, duration_s)
    return folders


def complete(run: Path, document: Mapping[str, Any], duration_s: float) -> None:
    """Add what make_results leaves out: sampled sockets with a timeout, records that are empty, the plan."""
    times = np.arange(0.0, duration_s, 0.1)
    state = np.where((times > 5) & (times < 5.5), 4, np.where((times > 8) & (times < 8.3), 3, 0))
    columns: dict[str, Any] = {name: np.full(times.size, 7) for name, _ in records.SCHEMAS["tcp_info"]}
    names = {"flow": "f1", "ca": document["params"]["cca"]}
    columns.update({name: np.full(times.size, word, dtype=object) for name, word in names.items()})
    columns.update(time_ns=START_NS + np.rint(times * 1e9).astype(np.int64), t_s=times, ca_state=state,
                   ca_phase=np.where(times > 8, 1, 0))  # fmt: skip
    records.write(run / "records", "tcp_info", columns)
    for kind in records.SCHEMAS:
        if not (run / f"records/{kind}.parquet").exists():
            records.write(run / "records", kind, {name: [] for name, _ in records.SCHEMAS[kind]})
    flows = [{"name": "f1", "cca": document["params"]["cca"], "app": "iperf3", "start_s": 0.4}]
    (run / "raw/plan.json").write_text(json.dumps({"format": 1, "flows": flows}))
