# SPDX-License-Identifier: Apache-2.0
"""Variables and links in Grafana 12, by its own library: what reaches the queries, and where each link leads.

The tests of queries and links put variables in themselves (`benchmarks.grafana`, `tests.grafana_links`); these hold both against
`@grafana/scenes`, which draws dashboards since Grafana 11.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks import grafana, store_lab
from dashboards.addresses import report
from store.connect import connected
from tests import grafana_libraries, grafana_links
from tests.grafana_links import ALL

pytestmark = [pytest.mark.root]  # filling the database, on a busy machine
EVERY = "$__all"
"""All, in the links of this version; it understands the word in a URL as well."""
QUOTED = "ARRAY[${x:sqlstring}]::text[]"


@pytest.fixture(scope="module")
def folder() -> Path:
    return grafana_libraries.installed()


def variable(options: list[str], *, multi: bool = False, every: bool = False, url: Any = None) -> dict[str, Any]:
    current = {"text": [ALL], "value": [EVERY]} if every else {}
    return {"name": "x", "multi": multi, "includeAll": every, "options": options, "current": current, "url": url}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (variable(["a", "b"], multi=True, every=True), "ARRAY['a','b']::text[]"),
        (variable(["a", "b"], multi=True, every=True, url=ALL), "ARRAY['a','b']::text[]"),
        (variable([], multi=True, every=True), "ARRAY[]::text[]"),
        (variable([""]), "ARRAY['']::text[]"),
        (variable([], multi=True, url=[]), "ARRAY[]::text[]"),
        (variable(["it's; --", "b"], multi=True, every=True, url=["it's; --"]), "ARRAY['it''s; --']::text[]"),
        (variable(["18446744073709551615"]), "ARRAY['18446744073709551615']::text[]"),
        (variable(["b", "a"]), "ARRAY['b']::text[]"),
        # no such option: an array of the word is no error, and nothing is found; so no link may lead there
        (variable(["a", "b"], url=ALL), "ARRAY['All']::text[]"),
        (variable(["a", "b"], multi=True, url=ALL), "ARRAY['All']::text[]"),
    ],
)
def test_what_a_variable_puts_into_a_query(folder: Path, given: dict[str, Any], text: str) -> None:
    assert grafana_libraries.put_in(folder, [{"variables": [given], "texts": [QUOTED]}]) == [[text]]


@pytest.mark.parametrize("path", grafana.BOARDS, ids=lambda path: path.stem)
def test_queries_and_links_of_every_state_are_those_that_the_tests_take(
    folder: Path, path: Path, full: store_lab.Database
) -> None:
    board = grafana.board(path)
    links = [link["url"] for link in board["links"] if link["url"] != report()]
    queries = [f"ARRAY[${{{one['name']}:sqlstring}}]::text[]" for one in board["templating"]["list"]]
    scenes, expected = [], []
    with connected("reader", full.url) as connection:
        for values, says_all in grafana_links.states(connection, board):
            scenes.append({
                "variables": list(_variables(connection, board, values, says_all)), "texts": [*queries, *links]
            })  # fmt: skip
            expected.append((
                [grafana.interpolate(query, values) for query in queries],
                [grafana_links.address(link, values, says_all) for link in links],
            ))  # fmt: skip
    answers = grafana_libraries.put_in(folder, scenes)
    assert len(answers) == len(expected) > 2 and links
    for texts, (asked, led) in zip(answers, expected, strict=True):
        assert texts[: len(queries)] == asked
        assert [grafana_links.parsed(text.replace(EVERY, ALL)) for text in texts[len(queries) :]] == led


def _variables(
    connection: Any, board: Mapping[str, Any], values: grafana_links.State, says_all: set[str]
) -> Iterator[dict[str, Any]]:
    for one in board["templating"]["list"]:
        name = one["name"]
        url: Any = ALL if name in says_all else values[name] if one["multi"] else (values[name] or [""])[0]
        options = grafana_links.options(connection, one, values)
        yield {key: one[key] for key in ("name", "multi", "includeAll", "current")} | {"options": options, "url": url}
