# SPDX-License-Identifier: Apache-2.0
"""Alert rules: each is silent where all is well, and fires for what it is about and for nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import store_lab
from benchmarks.make_results import Case
from dashboards import alerts
from store import debian_server
from store.connect import connected
from testbed import grafana
from tests.store import board_data

pytestmark = pytest.mark.root
BY_NAME = {rule.name: rule for rule in alerts.RULES}


def firing(database: store_lab.Database, name: str) -> list[tuple[str, ...]]:
    """What a rule fires for: the texts of its rows."""
    rule = BY_NAME[name]
    rows = database.rows(rule.sql)
    for row in rows:
        assert all(isinstance(value, str) for value in row[:-1]) and isinstance(row[-1], float), "texts and one number"
    return sorted(tuple(row[:-1]) for row in rows if row[-1] > rule.limit)


def test_an_empty_store_fires_nothing(database: store_lab.Database) -> None:
    assert {name: firing(database, name) for name in BY_NAME} == {name: [] for name in BY_NAME}


def test_a_silent_campaign_and_a_missing_receiver_are_told_apart(database: store_lab.Database, tmp_path: Path) -> None:
    """Transfers every ten minutes, by turns to two receivers; twice the longest pause is 20 minutes, of one receiver 40."""
    store_lab.load(database, store_lab.results(tmp_path, 1.0, board_data.TRANSFERS, experiment="journey"))

    def last_was(campaign_ago: int, far_ago: int) -> None:
        """Minutes since the last transfer, and since the last to the receiver far."""
        for receiver, ago in (("far", far_ago), ("near", campaign_ago)):
            database.rows(
                f"UPDATE runs SET made_at = now() - ({ago} + 20 * (n - 1)) * interval '1 min' FROM (SELECT r.run_id, "
                "row_number() OVER (ORDER BY seed DESC) AS n FROM runs r JOIN run_params p USING (run_id) "
                f"WHERE p.name = 'receiver' AND p.value = '{receiver}') o WHERE o.run_id = runs.run_id RETURNING 1",
                "writer",
            )

    last_was(5, 15)
    assert (firing(database, "campaign-silent"), firing(database, "receiver-missing")) == ([], [])
    last_was(35, 45)
    assert (firing(database, "campaign-silent"), firing(database, "receiver-missing")) == ([("journey",)], [])
    last_was(5, 60)
    assert (firing(database, "campaign-silent"), firing(database, "receiver-missing")) == ([], [("journey", "far")])
    last_was(60 * 24 * 8, 60 * 24 * 9)
    assert (firing(database, "campaign-silent"), firing(database, "receiver-missing")) == ([], []), "long over"


def test_a_share_of_invalid_runs_fires_above_a_tenth_of_at_least_five(
    database: store_lab.Database, tmp_path: Path
) -> None:
    cases = tuple(Case("reno", 50, seed) for seed in range(1, 11))
    store_lab.load(database, store_lab.results(tmp_path, 1.0, cases, experiment="ten"))
    store_lab.load(database, store_lab.results(tmp_path, 1.0, cases[:4], experiment="four"))
    invalid = "UPDATE runs SET verdict = 'invalid' WHERE seed <= {} RETURNING 1"
    database.rows(invalid.format(1), "writer")
    assert firing(database, "invalid-share") == []
    database.rows(invalid.format(2), "writer")
    assert firing(database, "invalid-share") == [("ten",)]
    database.rows("UPDATE runs SET ingested_at = now() - interval '2 days' RETURNING 1", "writer")
    assert firing(database, "invalid-share") == []


def test_a_store_above_fifty_gigabytes_fires_and_one_below_does_not(
    database: store_lab.Database, timescale: debian_server.Server
) -> None:
    """The size that the server itself tells; then one that a function of the same name tells instead, found before the server's."""
    ((gigabytes,),) = database.rows(BY_NAME["store-size"].sql)
    ((megabytes,),) = database.rows("SELECT sum(pg_total_relation_size(oid)) / 1e6 FROM pg_class WHERE relkind = 'r'")
    assert gigabytes == pytest.approx(float(megabytes) / 1e3, rel=0.5), "the tables of all databases are in the latter"
    assert firing(database, "store-size") == []
    with store_lab.admin(timescale, database.name) as admin:
        admin.execute("CREATE SCHEMA told")
        admin.execute("GRANT USAGE ON SCHEMA told TO PUBLIC")
        for size, above in ((50_000_000_000, False), (50_000_000_001, True)):
            admin.execute(
                "CREATE OR REPLACE FUNCTION told.pg_database_size(name) RETURNS bigint LANGUAGE sql "
                f"AS 'SELECT {size}::bigint'"
            )
            with connected("reader", database.url) as reader:
                reader.execute("SET search_path = told, warpbed, public, pg_catalog")
                ((told,),) = reader.execute(BY_NAME["store-size"].sql).fetchall()
            assert (told > BY_NAME["store-size"].limit) is above


def test_the_rules_are_provisioned_only_where_asked_for_and_taken_away_again(
    database: store_lab.Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARPBED_DATABASE", database.url)
    monkeypatch.setenv("PGPASSFILE", str(database.passwords))
    file = tmp_path / "alerting/warpbed.yml"
    grafana.provision(tmp_path)
    assert not file.exists()
    grafana.provision(tmp_path, alerts=True)
    said = json.loads(file.read_text().replace("$$", "$"))
    rules = said["groups"][0]["rules"]
    assert [rule["uid"] for rule in rules] == [f"warpbed-{name}" for name in BY_NAME]
    assert all(rule["condition"] == rule["data"][-1]["refId"] for rule in rules)
    grafana.provision(tmp_path)
    assert json.loads(file.read_text()) == alerts.removal()
