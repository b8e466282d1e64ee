# SPDX-License-Identifier: Apache-2.0
"""Means of the dashboards: over which runs they are, how far they can be trusted, and what they say that they mix.

The expected numbers are worked out by hand: Student's t for two runs (one degree of freedom) is 12.706 at 95 %.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from base.paths import ROOT
from benchmarks import grafana, store_lab
from benchmarks.make_results import Case
from dashboards.looks import JOINER
from store import debian_server
from store.connect import connected
from tests import grafana_links
from tests.store.test_dashboards import ELAPSED, drawn

pytestmark = [pytest.mark.root]

T_975 = 12.706
UTILIZATION = {(50, 1): 0.8, (50, 2): 0.6, (50, 3): 0.6, (250, 1): 0.9}
"""Of reno's runs by buffer and seed. The third has the packets of the second: it is the same run again."""


@pytest.fixture(scope="module")
def stored(timescale: debian_server.Server, tmp_path_factory: pytest.TempPathFactory) -> store_lab.Database:
    place = tmp_path_factory.mktemp("results")
    folder = store_lab.results(place, 2.0, tuple(Case("reno", size, seed) for size, seed in UTILIZATION))
    for file in folder.glob("*/run.json"):
        document = json.loads(file.read_text())
        packets = "250p" if document["params"]["buffer"] == "250p" else min(document["seed"], 2)
        file.write_text(json.dumps({**document, "packets": f"{packets:>64}"}))
    database = store_lab.make(timescale, "averages")
    store_lab.load(database, place)
    for (size, seed), value in UTILIZATION.items():
        database.rows(
            f"UPDATE run_metrics SET value = {value} WHERE name = 'utilization' AND run_id = (SELECT run_id FROM runs "
            f"WHERE seed = {seed} AND params->>'buffer' = '{size}p')",
            "writer",
        )
    return database


def panels(database: store_lab.Database, name: str, **chosen: str) -> dict[str, list[Any]]:
    """Title → rows of a panel's first query."""
    content = grafana.board(ROOT / f"dashboards/json/{name}.json")
    with connected("reader", database.url) as connection:
        values = grafana_links.opened(connection, content, {f"var-{key}": [value] for key, value in chosen.items()})
        found: dict[str, list[Any]] = {}
        for title, _, rows in drawn(connection, content, values, ELAPSED):
            found.setdefault(title, rows)
    return found


def test_a_run_made_twice_counts_once_in_a_mean_and_in_its_interval(stored: store_lab.Database) -> None:
    """(0.8 + 0.6) / 2 over two runs, not (0.8 + 0.6 + 0.6) / 3; the deviation of two values 0.2 apart is 0.2 / sqrt 2."""
    rows = panels(stored, "sweep", metric="utilization", parameter="buffer")["Means as numbers"]
    half = T_975 * 0.2 / 2
    small, large = rows
    assert small[:2] == ("reno", "50p") and small[5:] == (2, 1)
    assert small[2:5] == pytest.approx((0.7, 0.7 - half, 0.7 + half), abs=1e-3)
    assert large == ("reno", "250p", 0.9, None, None, 1, 1), "one run has no interval"


def test_a_mean_over_other_settings_says_how_many_and_has_no_interval(stored: store_lab.Database) -> None:
    ((*named, mean, low, high, runs, settings),) = panels(stored, "sweep", metric="utilization", parameter="cca")[
        "Means as numbers"
    ]
    assert named == ["reno", "reno"] and mean == pytest.approx((0.8 + 0.6 + 0.9) / 3)
    assert (low, high, runs, settings) == (None, None, 3, 2)


def test_one_more_parameter_is_held_fixed(stored: store_lab.Database) -> None:
    held = {"metric": "utilization", "parameter": "cca", "held": "buffer"}
    for at, mean, runs in (("50p", 0.7, 2), ("250p", 0.9, 1)):
        shown = panels(stored, "sweep", **held, at=at)
        (row,) = shown["Means as numbers"]
        assert (row[2], row[5], row[6]) == (pytest.approx(mean), runs, 1)
        assert len(shown["Runs"]) == (3 if at == "50p" else 1)


def test_bands_of_compare_are_over_seeds_alone(stored: store_lab.Database) -> None:
    def named(by: str) -> dict[str, dict[Any, float]]:
        series: dict[str, dict[Any, float]] = {}
        for time, name, value in panels(stored, "compare", by=by)["Goodput by group"]:
            series.setdefault(name.replace(JOINER, ""), {})[time] = value
        return series

    settings = named("setting")
    means = {name: values for name, values in settings.items() if "95 %" not in name}
    assert set(means) == {"reno · 50p", "reno · ┄┄ 250p"}
    assert len(settings) == 4, "only the setting with two runs that count has an interval"
    (low,) = (values for name, values in settings.items() if "low" in name)
    runs = stored.rows(
        "SELECT seed, time_bucket('100ms', elapsed(t_s)), avg(goodput_mbps) FROM flow_points JOIN runs USING (run_id) "
        "WHERE params->>'buffer' = '50p' AND seed < 3 AND width_ms = 100 AND goodput_mbps IS NOT NULL GROUP BY 1, 2"
    )
    first, second = ({time: value for seed, time, value in runs if seed == number} for number in (1, 2))
    compared = first.keys() & second.keys() & low.keys()
    assert compared
    for time in compared:
        mean, half = (first[time] + second[time]) / 2, T_975 * abs(first[time] - second[time]) / 2
        assert means["reno · 50p"][time] == pytest.approx(mean)
        assert low[time] == pytest.approx(mean - half, abs=1e-3 * max(1.0, half))

    mixed = named("algorithm")
    assert set(mixed) == {"reno · mean of 2 settings"}, "no interval of what is no error of measurement"


def test_two_hundred_runs_have_their_headroom_in_a_table_with_the_smallest_first(stored: store_lab.Database) -> None:
    """As bars with names below them, more than fifteen were a smear."""
    (panel,) = (
        one for one in grafana.board(ROOT / "dashboards/json/fidelity.json")["panels"] if one["title"] == "CPU headroom"
    )
    assert panel["type"] == "table"
    rows = panels(stored, "fidelity")["CPU headroom"]
    headroom = [row[3] for row in rows]
    assert len(rows) == len(UTILIZATION) and headroom == sorted(headroom)


WIDTH = 1600 - 90
"""Pixels of a window of 1600 that the panels have: Grafana's navigation and margins take the rest."""


@pytest.mark.parametrize("path", grafana.BOARDS, ids=lambda path: path.stem)
def test_tables_fit_a_window_of_1600_pixels_and_their_headings_are_words(path: Any, stored: store_lab.Database) -> None:
    """The columns that have a width leave at least 100 pixels to each that takes what is left; no heading is a column's own name."""
    content = grafana.board(path)
    with connected("reader", stored.url) as connection:
        values = grafana_links.opened(connection, content, {})
        for panel in content["panels"]:
            if panel["type"] != "table" or panel.get("transformations"):
                continue
            cursor = connection.execute(grafana.expand(panel["targets"][0]["rawSql"], values, ELAPSED))
            of: dict[str, dict[str, Any]] = {column.name: {} for column in cursor.description or ()}
            for override in panel["fieldConfig"]["overrides"]:
                if override["matcher"]["id"] == "byName":
                    of[override["matcher"]["options"]].update(
                        {one["id"]: one["value"] for one in override["properties"]}
                    )
            shown = {name: known for name, known in of.items() if not known.get("custom.hidden")}
            assert all("displayName" in known for known in shown.values()), (panel["title"], shown)
            assert not any("_" in known["displayName"] for known in shown.values()), panel["title"]
            taken = sum(known.get("custom.width", 100) for known in shown.values())
            assert taken <= WIDTH * panel["gridPos"]["w"] / 24, (panel["title"], taken)
