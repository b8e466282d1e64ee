# SPDX-License-Identifier: Apache-2.0
"""TimescaleDB's community edition compresses chunks of old runs, and nobody who reads, replaces or forgets them sees a difference.

No registry has that edition. WARPBED_TEST_TIMESCALEDB names a tree as store.debian_server makes it whose TimescaleDB was built from
its sources (tsl/ included) for the same PostgreSQL; docs/store.md says how.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import grafana, store_lab
from benchmarks.make_results import Case
from dashboards.addresses import ZERO_S
from store import actions, debian_server, folder, migrate, tables
from store.connect import connected
from tests import grafana_links

TREE = os.environ.get("WARPBED_TEST_TIMESCALEDB", "")
pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(not TREE, reason="no TimescaleDB of the community edition at WARPBED_TEST_TIMESCALEDB"),
]
OLD = (Case("reno", 50, 1), Case("cubic", 50, 1), Case("cubic", 250, 2, flows=2))
TIMED = [table for table in tables.tables() if table.timed]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[debian_server.Server]:
    with debian_server.running(tmp_path_factory.mktemp("pg"), built=Path(TREE), **store_lab.FAST) as started:
        yield started


@pytest.fixture
def old(server: debian_server.Server, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[store_lab.Database]:
    """Three runs in chunks that the policies have compressed, and a run of a later chunk."""
    name = "t_" + "".join(c if c.isalnum() else "_" for c in request.node.name.lower())[:50]
    database = store_lab.make(server, name)
    store_lab.load(database, store_lab.results(tmp_path / "old", 20.0, OLD))
    _next_run(database, 3 * tables.RUNS_PER_CHUNK)
    store_lab.load(database, store_lab.results(tmp_path / "new", 1.0, (Case("reno", 50, 3),), experiment="later"))
    yield database
    with store_lab.admin(server, "postgres") as admin:
        admin.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def _next_run(database: store_lab.Database, number: int) -> None:
    with store_lab.admin(database.server, database.name) as admin:
        admin.execute(f"SELECT setval(pg_get_serial_sequence('warpbed.runs', 'run_id'), {number})")


def compress(database: store_lab.Database) -> None:
    """What the policies do by themselves once in a while, now."""
    jobs = database.rows(
        "SELECT job_id FROM timescaledb_information.jobs WHERE hypertable_schema = 'warpbed' AND proc_name = 'policy_compression'",
        "owner",
    )
    assert len(jobs) == len(TIMED)
    with connected("owner", database.url, autocommit=True) as connection:
        for (job,) in jobs:
            connection.execute(f"CALL public.run_job({job})")


def compressed(database: store_lab.Database) -> set[tuple[str, bool]]:
    """(table, whether it is compressed) of the chunks with the old runs."""
    return set(
        database.rows(
            "SELECT hypertable_name, is_compressed FROM timescaledb_information.chunks WHERE hypertable_schema = 'warpbed' "
            "AND range_start_integer <= 1 AND range_end_integer > 1",
            "owner",
        )
    )


def digests(database: store_lab.Database, runs: str = "true") -> dict[str, Any]:
    """Of every table's rows, as queries read them."""
    return {
        table.name: database.rows(
            f'SELECT count(*), sum(hashtextextended(t::text, 0)) FROM "{table.name}" t WHERE {runs}'
        )[0]
        for table in tables.tables()
    }


def panels(database: store_lab.Database) -> dict[tuple[str, str, str], list[Any]]:
    """Everything that the dashboards ask of the old runs."""
    answers = {}
    span = grafana.Range(ZERO_S, ZERO_S + 20)
    with connected("reader", database.url) as connection:
        for path in grafana.BOARDS:
            content = grafana.board(path)
            key = (
                "var-experiments"
                if any(v["name"] == "experiments" for v in content["templating"]["list"])
                else "var-experiment"
            )
            values = grafana_links.opened(connection, content, {key: ["quickstart"]})
            for title, target in grafana.queries(content):
                query = grafana.expand(target["rawSql"], values, span)
                answers[path.stem, title, target["refId"]] = sorted(connection.execute(query).fetchall(), key=_by_words)
    return answers


def _by_words(row: tuple[Any, ...]) -> list[str]:
    return [f"{value:.6g}" if isinstance(value, float) else str(value) for value in row]


def same(before: list[Any], after: list[Any]) -> bool:
    """A mean's last digits depend on the order in which its values are added up."""
    return len(before) == len(after) and all(
        one == pytest.approx(other, rel=1e-9) if isinstance(one, float) and isinstance(other, float) else one == other
        for row, again in zip(before, after, strict=True)
        for one, other in zip(row, again, strict=True)
    )


def test_old_runs_are_compressed_and_read_as_before(old: store_lab.Database) -> None:
    assert old.rows("SELECT current_setting('timescaledb.license')") == [("timescale",)]
    before, drawn = digests(old), panels(old)
    assert {state for _, state in compressed(old)} == {False}
    assert sum(len(rows) for rows in drawn.values()) > 500
    compress(old)
    assert {name for name, state in compressed(old) if state} == {table.stored for table in TIMED}
    newest = "SELECT bool_or(is_compressed) FROM timescaledb_information.chunks WHERE range_end_integer > (SELECT max(run_id) FROM runs)"
    assert old.rows(newest, "owner") == [(False,)], "runs of the last chunks are still loaded and replaced"
    assert digests(old) == before
    again = panels(old)
    assert again.keys() == drawn.keys()
    assert [key for key, rows in drawn.items() if not same(rows, again[key])] == []


def test_a_compressed_database_is_smaller(old: store_lab.Database) -> None:
    size = "SELECT sum(hypertable_size(format('warpbed.%I', hypertable_name)::regclass))::float8 FROM timescaledb_information.hypertables"
    ((before,),) = old.rows(size, "owner")
    compress(old)
    ((after,),) = old.rows(size, "owner")
    print(f"{before / 1e6:.2f} MB, compressed {after / 1e6:.2f} MB")
    assert after < before


def test_a_compressed_run_is_replaced_and_forgotten(old: store_lab.Database, tmp_path: Path) -> None:
    compress(old)
    kept = digests(old, "run_id = 1")
    again = store_lab.results(tmp_path / "again", 10.0, (OLD[1],))
    assert store_lab.load(old, again) == ["replaced"]
    assert digests(old, "run_id = 1") == kept
    assert actions.forget(old.url, "quickstart", folder.find(tmp_path / "old")[-1].name) == 0
    assert digests(old, "run_id = 1") == kept
    assert actions.forget(old.url, "quickstart", None) == 0
    assert all(rows == 0 for rows, _ in digests(old, "run_id < 10").values())


def test_migrating_again_keeps_what_is_compressed(old: store_lab.Database) -> None:
    compress(old)
    before = digests(old)
    old.rows("UPDATE schema_version SET tables = 'x' RETURNING 1", "owner")
    with connected("owner", old.url, autocommit=True) as connection:
        assert migrate.migrate(connection)
    assert digests(old) == before
    assert {name for name, state in compressed(old) if state} == {table.stored for table in TIMED}
