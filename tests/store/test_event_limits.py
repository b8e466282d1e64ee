# SPDX-License-Identifier: Apache-2.0
"""Annotations have limits, and none is silent: of a kind 500 events are stored, and where a chart has more than 50 it says how many."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from base.paths import ROOT
from benchmarks import grafana, store_lab
from benchmarks.make_results import Case
from dashboards.addresses import ZERO_S
from dashboards.run import MOST_MARKS
from store import debian_server, files, folder
from store.connect import connected
from store.derive import MOST_EVENTS
from tests import grafana_links

EVERY_S = 0.04
"""From one recovery to the next; half of it is spent in recovery."""
RECOVERY = 3
"""TCP_CA_Recovery in include/uapi/linux/tcp.h"""


def recovering(place: Path, times: int) -> Path:
    """One run whose flow begins fast recovery so many times."""
    duration_s = times * EVERY_S + 1
    results = store_lab.results(place, duration_s, (Case("reno", 50, 1),))
    (file,) = results.glob("*/records/tcp_info.parquet")
    samples = pq.read_table(file)
    start_ns = samples["time_ns"][0].as_py()
    offsets_s = [number * EVERY_S / 2 for number in range(2 * times)]
    first = samples.slice(0, 1)
    table = pa.concat_tables([first] * len(offsets_s))
    for name, values in (
        ("time_ns", [start_ns + round(offset * 1e9) for offset in offsets_s]),
        ("t_s", offsets_s),
        ("ca_state", [RECOVERY if number % 2 else 0 for number in range(2 * times)]),
    ):
        field = table.schema.field(name)
        table = table.set_column(table.column_names.index(name), field, pa.array(values, field.type))
    pq.write_table(table, file)
    return results


@pytest.mark.parametrize(
    ("times", "kept", "said"),
    [
        (MOST_EVENTS, MOST_EVENTS, "fast recovery"),
        (MOST_EVENTS + 3, MOST_EVENTS, "fast recovery (3 more not shown)"),
    ],
)
def test_the_last_event_that_is_kept_says_how_many_are_not(tmp_path: Path, times: int, kept: int, said: str) -> None:
    with files.opened([folder.read(run) for run in folder.find(recovering(tmp_path, times))]) as views:
        texts = [
            text for (text,) in views.execute("SELECT text FROM events WHERE kind = 'recovery' ORDER BY t_s").fetchall()
        ]
    assert len(texts) == kept
    assert texts == ["fast recovery"] * (kept - 1) + [said]


@pytest.mark.root
def test_a_chart_with_too_many_marks_says_how_many_and_one_that_is_near_enough_shows_them(
    timescale: debian_server.Server, tmp_path: Path
) -> None:
    """All of it: one mark with the number. Its last second: the marks, the last of which says what was not stored."""
    database = store_lab.make(timescale, "event_limits")
    store_lab.load(database, recovering(tmp_path, MOST_EVENTS + 3))
    content = grafana.board(ROOT / "dashboards/json/run.json")
    (marks,) = [one for one in content["annotations"]["list"] if one["name"] == "Recovery"]
    end_s = MOST_EVENTS * EVERY_S  # of what is kept: 20 s

    def shown(from_s: float, to_s: float) -> list[str]:
        span = grafana.Range(ZERO_S + from_s, ZERO_S + to_s)
        with connected("reader", database.url) as connection:
            values = grafana_links.opened(connection, content, {})
            rows = connection.execute(grafana.expand(marks["target"]["rawSql"], values, span)).fetchall()
        return [text for _, text, _ in rows]

    assert shown(0, end_s + 10) == [f"{MOST_EVENTS} marks of this kind from here on: zoom in"]
    near = shown(end_s - 1, end_s + 10)
    assert len(near) == 1 / EVERY_S < MOST_MARKS
    assert set(near[:-1]) == {"f1: fast recovery"} and near[-1] == "f1: fast recovery (3 more not shown)"
