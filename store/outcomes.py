# SPDX-License-Identifier: Apache-2.0
"""What the theses' entries came to, in the database: for the dashboard Reproduction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from analysis.reproduction.outcomes import Judged


def put(
    connection: psycopg.Connection[Any],
    outcomes: Sequence[Judged],
    places: Mapping[str, int],
    experiments: Mapping[str, str],
) -> None:
    """Replace the outcomes of these entries, and remove those of entries that no catalogue has any more.

    places: every entry of every catalogue → its place in its catalogue; experiments: file of an experiment → its name
    """
    with connection.transaction(), connection.cursor() as cursor:
        given = [one.entry.id for one in outcomes]
        cursor.execute("DELETE FROM outcomes WHERE entry = ANY(%s) OR NOT entry = ANY(%s)", [given, list(places)])
        if not outcomes:
            return
        cursor.executemany(
            "INSERT INTO outcomes (entry, thesis, number, title, place, kind, outcome, reason) VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
            [_row(one, places) for one in outcomes],
        )
        rows = [row for one in outcomes for row in _evidence(one, experiments)]
        if rows:
            cursor.executemany(f"INSERT INTO evidence VALUES ({', '.join(['%s'] * 12)})", rows)


def _row(one: Judged, places: Mapping[str, int]) -> tuple[Any, ...]:
    entry = one.entry
    section, page = entry.where.section, entry.where.page
    place = ", ".join(part for part in (section and f"section {section}", page and f"page {page}") if part)
    return entry.id, entry.id.partition("-")[0], places[entry.id], entry.title, place, entry.kind, one.word, one.reason


def _evidence(one: Judged, experiments: Mapping[str, str]) -> list[tuple[Any, ...]]:
    return [
        (one.entry.id, number, e.part, e.says or one.entry.says(e.part), e.held, e.published, e.measured, e.seeds,
            e.reason, e.explains,
         e.by, experiments.get(e.by, ""))
        for number, e in enumerate(one.evidence)
    ]  # fmt: skip
