# SPDX-License-Identifier: Apache-2.0
"""Legends and lists are in the order of their numbers: Grafana lists the series of a query by the characters of their names."""

from __future__ import annotations

from typing import Any

import pytest

from base.paths import ROOT
from benchmarks import grafana, store_lab
from benchmarks.make_results import Case
from dashboards.looks import DASHES, JOINER, natural
from store import debian_server
from store.connect import connected
from tests import grafana_links
from tests.store.test_dashboards import ELAPSED, drawn

pytestmark = [pytest.mark.root]

BUFFERS = (1000, 50, 9)
SIZES = ("10MB", "1MB", "200KB")


@pytest.fixture(scope="module")
def stored(timescale: debian_server.Server, tmp_path_factory: pytest.TempPathFactory) -> store_lab.Database:
    place = tmp_path_factory.mktemp("results")
    store_lab.results(place, 2.0, tuple(Case("reno", size, seed) for size in BUFFERS for seed in (10, 2)))
    store_lab.results(place, 2.0, (Case("reno", 50, 1, flows=11),), experiment="crowd")
    store_lab.results(
        place,
        2.0,
        tuple(Case("reno", 50, n, params={"receiver": "d", "size": size}) for n, size in enumerate(SIZES)),
        experiment="journey",
    )
    database = store_lab.make(timescale, "natural_order")
    store_lab.load(database, place)
    return database


def legends(database: store_lab.Database, name: str, parameters: dict[str, list[str]]) -> dict[str, list[str]]:
    """Title of a panel → what its legend says, in Grafana's order: of the characters' bytes."""
    content = grafana.board(ROOT / f"dashboards/json/{name}.json")
    with connected("reader", database.url) as connection:
        values = grafana_links.opened(connection, content, parameters)
        by_panel: dict[str, set[str]] = {}
        for title, _, rows in drawn(connection, content, values, ELAPSED):
            by_panel.setdefault(title, set()).update(
                row[1] for row in rows if len(row) == 3 and isinstance(row[1], str)
            )
    return {title: [seen(one) for one in sorted(names, key=str.encode)] for title, names in by_panel.items()}


def seen(text: str) -> str:
    return text.replace(JOINER, "")


def listed(database: store_lab.Database, name: str, variable: str, parameters: dict[str, list[str]]) -> list[Any]:
    content = grafana.board(ROOT / f"dashboards/json/{name}.json")
    with connected("reader", database.url) as connection:
        values = grafana_links.opened(connection, content, parameters)
        (one,) = [each for each in content["templating"]["list"] if each["name"] == variable]
        return grafana_links.options(connection, one, values)


def test_settings_and_seeds_stand_in_the_order_of_their_numbers(stored: store_lab.Database) -> None:
    shown = legends(stored, "compare", {"var-experiments": ["quickstart"]})
    sizes = ("9p", f"{DASHES[1]}50p", f"{DASHES[2]}1000p")
    assert shown["Throughput"] == [f"reno · {size}, seed {seed}" for size in sizes for seed in (2, 10)]
    assert [name for name in shown["Goodput by group"] if "%" not in name] == [f"reno · {size}" for size in sizes]


def test_groups_by_a_parameter_stand_in_the_order_of_its_numbers(stored: store_lab.Database) -> None:
    shown = legends(stored, "compare", {"var-experiments": ["quickstart"], "var-by": ["buffer"]})
    assert [name for name in shown["Goodput by group"] if "%" not in name] == ["1: 9p", "2: 50p", "3: 1000p"]


def test_runs_are_listed_by_their_parameters_and_seeds_as_numbers(stored: store_lab.Database) -> None:
    names = listed(stored, "run", "run", {"var-experiment": ["quickstart"]})
    label = dict(stored.rows("SELECT run, label FROM runs WHERE experiment = 'quickstart'"))
    expected = [(size, f"seed {seed}") for size in ("9p", "50p", "1000p") for seed in (2, 10)]
    assert [(label[name].split("buffer ")[1].split(",")[0], label[name].split(", ")[-1]) for name in names] == expected


def test_flows_stand_in_the_order_of_their_numbers(stored: store_lab.Database) -> None:
    flows = [f"f{number}" for number in range(1, 12)]
    crowd = {"var-experiment": ["crowd"]}
    assert listed(stored, "run", "flow", crowd) == flows
    assert legends(stored, "run", crowd)["Throughput"] == [f"reno · {flow}" for flow in flows]


def test_sizes_of_transfers_stand_in_the_order_of_their_bytes(stored: store_lab.Database) -> None:
    journey = {"var-experiment": ["journey"]}
    assert listed(stored, "campaign", "size", journey) == ["200KB", "1MB", "10MB"]
    assert legends(stored, "campaign", journey)["Completion time by size"] == ["200KB", "1MB", "10MB"]


def test_names_of_several_numbers_are_ordered_by_the_first_that_differs(stored: store_lab.Database) -> None:
    names = ["s1-eth2", "s1-eth10", "s2-eth1", "s10-eth1", "web", "web.2", "web.10", "web9999"]
    quoted = ", ".join(f"('{name}')" for name in reversed(names))
    rows = stored.rows(f"SELECT {natural('name')} FROM (VALUES {quoted}) v(name)")
    assert [seen(name) for name in sorted((name for (name,) in rows), key=str.encode)] == names
