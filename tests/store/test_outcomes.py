# SPDX-License-Identifier: Apache-2.0
"""What the theses' entries came to, in the database: replaced when it is decided again, gone where no catalogue has the entry."""

from __future__ import annotations

import pytest

from analysis.reproduction.outcomes import judged
from benchmarks import store_lab
from store import outcomes
from store.connect import connected
from tests.store import board_data

pytestmark = pytest.mark.root
PLACES = {"ho2008-fig5.3": 3, "kato2012-s3.3": 7}


def stored(database: store_lab.Database) -> list[tuple[str, str, str, int]]:
    return database.rows(
        "SELECT o.entry, o.thesis, o.outcome, count(e.entry) FROM outcomes o LEFT JOIN evidence e USING (entry) GROUP BY o.entry ORDER BY 1"
    )


def test_outcomes_are_replaced_and_those_of_no_catalogue_go(database: store_lab.Database) -> None:
    first, second = board_data.judgements()
    with connected("writer", database.url, autocommit=True) as connection:
        for _ in range(2):
            outcomes.put(connection, [first, second], PLACES, {"experiments/q.yml": "q"})
            assert stored(database) == [
                ("ho2008-fig5.3", "ho2008", "contradicts, unexplained", 2),
                ("kato2012-s3.3", "kato2012", "not bound yet", 0),
            ]
        rows = database.rows(
            "SELECT part, held, says, published, measured, seeds, experiment FROM evidence ORDER BY number"
        )
        assert rows == [
            ("medley_mbps", "holds", "medley mbps", "48.1", "48 ± 0.2", 2, "q"),
            ("1", "contradicted", "Medley is faster than Reno", "", "1 against 2", 0, ""),
        ]
        assert database.rows("SELECT place, number FROM outcomes WHERE thesis = 'ho2008'") == [
            ("section 5.2, page 60", 3)
        ]
        # deciding one of them leaves the other as it was
        outcomes.put(connection, [judged(first.entry, [])], PLACES, {})
        assert [row[2:] for row in stored(database)] == [("not bound yet", 0), ("not bound yet", 0)]
        outcomes.put(connection, [first], {"ho2008-fig5.3": 1}, {})
        assert [row[0] for row in stored(database)] == ["ho2008-fig5.3"]
