# SPDX-License-Identifier: Apache-2.0
"""Every panel of every dashboard asks the real database something that it answers, whole, bounded and without errors."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from base.paths import ROOT
from benchmarks import grafana, store_lab
from benchmarks.make_results import START_NS
from dashboards.addresses import ZERO_S, report
from store import debian_server
from store.connect import connected
from tests import grafana_links
from tests.store import board_data

MOST_ROWS = 20_000
ELAPSED = grafana.Range(ZERO_S, ZERO_S + 20)
CAMPAIGN = grafana.Range(ZERO_S, ZERO_S + 7 * 86_400)
YEARS = grafana.Range(START_NS / 1e9 - 86_400, START_NS / 1e9 + 86_400)
NO_GRAFANA = (
    "no Grafana at GRAFANA_URL (http://user:password@host:port); each panel's SQL is run against the database instead"
)


@pytest.fixture(scope="module")
def empty(timescale: debian_server.Server) -> store_lab.Database:
    return store_lab.make(timescale, "nothing")


@pytest.fixture(params=grafana.BOARDS, ids=lambda path: path.stem)
def board(request: pytest.FixtureRequest) -> dict[str, Any]:
    return grafana.board(request.param)


def time_of(content: dict[str, Any]) -> grafana.Range:
    if content["uid"] == "warpbed-campaign":
        return CAMPAIGN
    return ELAPSED if content["time"]["from"].startswith("2000-01-01") else YEARS


def chosen(database: store_lab.Database, content: dict[str, Any]) -> grafana_links.State:
    """Values of a dashboard over the quickstart's results, or a campaign's."""
    with connected("reader", database.url) as connection:
        names = {variable["name"] for variable in content["templating"]["list"]}
        wanted = {"var-metric": "utilization", "var-parameter": "buffer", "var-by": "setting"}
        wanted["var-experiment"] = board_data.CAMPAIGN if content["uid"] == "warpbed-campaign" else "quickstart"
        parameters = {name: [value] for name, value in wanted.items() if name.removeprefix("var-") in names}
        if "run" in names and "runs" not in names:
            rows = connection.execute(
                "SELECT run FROM runs WHERE run LIKE '%250p-s1-00000002' AND experiment = 'quickstart'"
            ).fetchall()
            parameters["var-run"] = [rows[0][0]] if rows else [""]
        if "experiments" in names:
            parameters["var-experiments"] = ["quickstart"]
        return grafana_links.opened(connection, content, parameters)


def answers(
    database: store_lab.Database, content: dict[str, Any]
) -> Iterator[tuple[str, dict[str, Any], list[str], list[Any]]]:
    values = chosen(database, content)
    for timescale in (True, False):
        with connected("reader", database.url) as connection:
            for title, target in grafana.queries(content):
                cursor = connection.execute(
                    grafana.expand(target["rawSql"], values, time_of(content), timescale=timescale)
                )
                assert cursor.description is not None
                yield title, target, [column.name for column in cursor.description], cursor.fetchall()


def test_the_written_dashboards_are_those_of_the_code() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "dashboards.build", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_there_are_seven_that_link_to_each_other() -> None:
    boards = [grafana.board(path) for path in grafana.BOARDS]
    uids = {content["uid"] for content in boards}
    assert uids == {
        f"warpbed-{name}" for name in ("experiments", "run", "compare", "sweep", "campaign", "fidelity", "reproduction")
    }
    for content in boards:
        targets = {
            link["url"].removeprefix("/d/").partition("?")[0] for link in content["links"] if link["url"] != report()
        }
        whole_length = ("warpbed-run", "warpbed-compare", "warpbed-campaign")
        own = {content["uid"]} if content["uid"] in whole_length else set()
        assert targets == (uids - {content["uid"]}) | own


def test_every_panel_says_what_it_shows(board: dict[str, Any]) -> None:
    assert board["description"]
    assert len({panel["title"] for panel in board["panels"]}) >= len(board["panels"]) - 1
    for panel in board["panels"]:
        defaults = panel["fieldConfig"]["defaults"]
        assert panel["title"] and len(panel["description"]) > 15, panel["title"]
        assert defaults["unit"] and defaults["noValue"], panel["title"]
        assert panel["targets"], panel["title"]
        assert (
            {target["datasource"]["uid"] for target in panel["targets"]} == {panel["datasource"]["uid"]} == {"warpbed"}
        )
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24


@pytest.mark.root
def test_every_variable_has_an_answer(board: dict[str, Any], empty: store_lab.Database) -> None:
    """Grafana 9.4 says "Error updating options" where a variable's query answers no row."""
    with connected("reader", empty.url) as connection:
        values: grafana_links.State = {}
        for variable in board["templating"]["list"]:
            rows = connection.execute(grafana.interpolate(variable["query"], values)).fetchall()
            assert rows, variable["name"]
            values[variable["name"]] = [str(rows[0][0])]


def test_panels_do_not_overlap(board: dict[str, Any]) -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in board["panels"]:
        place = panel["gridPos"]
        for cell in (
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        ):
            assert taken.setdefault(cell, panel["title"]) == panel["title"]


def test_variables_chain(board: dict[str, Any]) -> None:
    known: list[str] = []
    for variable in board["templating"]["list"]:
        used = {match[1] or match[3] for match in grafana.VARIABLE.finditer(variable["query"])}
        assert used <= set(known)
        if known and board["uid"] != "warpbed-reproduction":  # theses have no experiment
            assert used & {"experiment", "experiments"}, f"{variable['name']} does not follow the experiment"
        known.append(variable["name"])


@pytest.mark.root
def test_no_panel_is_empty_and_none_fails(board: dict[str, Any], full: store_lab.Database) -> None:
    for title, target, columns, rows in answers(full, board):
        assert rows, f"{title} {target['refId']} is empty"
        assert any(value is not None for row in rows for value in row), title
        assert len(rows) <= MOST_ROWS, f"{title} reads {len(rows)} rows"
        if target["format"] == "time_series":
            assert columns == ["time", "metric", "value"]
            assert {type(row[1]) for row in rows} == {str}
            assert [row[0] for row in rows] == sorted(row[0] for row in rows)


@pytest.mark.root
def test_an_empty_database_gives_no_errors(board: dict[str, Any], empty: store_lab.Database) -> None:
    """Every list is empty there: what Grafana puts in for it is no text at all, and for a single value an empty one or none."""
    with connected("reader", empty.url) as connection:
        values = grafana_links.opened(connection, board, {})
        assert values.get("experiments", values["experiment"]) == [""]
        none: grafana_links.State = {name: [] for name in values}
        for nothing in (values, none):
            for title, _, rows in drawn(connection, board, nothing, time_of(board)):
                assert len(rows) <= 1, title  # a count of 0, or a line that says that there is nothing


def drawn(
    connection: psycopg.Connection[Any], content: dict[str, Any], values: grafana_links.State, span: grafana.Range
) -> Iterator[tuple[str, str, list[Any]]]:
    """(panel, its query's letter, rows) of everything that a dashboard asks, annotations as well."""
    marks = [(entry["name"], entry["target"]) for entry in content["annotations"].get("list") or ()]
    for title, target in [*grafana.queries(content), *marks]:
        query = grafana.expand(target["rawSql"], values, span)
        try:
            rows = connection.execute(query).fetchall()
        except psycopg.Error as error:
            raise AssertionError(f"{content['title']}, {title} with {values}: {error}") from error
        yield title, target["refId"], rows


@pytest.mark.root
def test_annotations_tell_losses_timeouts_and_phases(full: store_lab.Database) -> None:
    content = grafana.board(ROOT / "dashboards/json/run.json")
    values = chosen(full, content)
    kinds = {}
    with connected("reader", full.url) as connection:
        for entry in content["annotations"]["list"]:
            cursor = connection.execute(grafana.expand(entry["target"]["rawSql"], values, ELAPSED))
            assert [column.name for column in cursor.description or ()] == ["time", "text", "tags"]
            kinds[entry["name"]] = cursor.fetchall()
    assert kinds["Losses"]
    assert "window cut" in kinds["Losses"][0][1]
    assert [row[1] for row in kinds["Timeouts"]] == ["f1: retransmission timeout"]
    assert len(kinds["Recovery"]) == 1
    assert {"f1: slow start", "f1: congestion avoidance"} <= {row[1] for row in kinds["Phases"]}
    assert kinds["Flows start"]


@pytest.mark.root
def test_phases_that_a_module_reports_are_reported_instead_of_slow_start(full: store_lab.Database) -> None:
    phases = full.rows(
        "SELECT DISTINCT cca, text FROM events JOIN runs USING (run_id) WHERE kind = 'phase' AND status = 'complete' "
        "AND experiment = 'quickstart' ORDER BY 1, 2"
    )
    assert [text for cca, text in phases if cca == "medley"] == [
        "medley: R false: the last loss was a random one",
        "medley: R true: the last loss was one of congestion",
    ]
    assert {text for cca, text in phases if cca == "reno"} == {"slow start", "congestion avoidance"}


@pytest.mark.root
def test_a_value_cannot_end_its_quotes(full: store_lab.Database) -> None:
    content = grafana.board(ROOT / "dashboards/json/run.json")
    nasty = "'; DROP TABLE warpbed.runs; --"
    with connected("reader", full.url) as connection:
        for _title, target in grafana.queries(content):
            query = grafana.expand(
                target["rawSql"],
                {"experiment": [nasty], "run": [nasty], "flow": [nasty, "x"], "to_ms": [nasty]},
                ELAPSED,
            )
            assert connection.execute(query).fetchall() == []
    assert full.rows("SELECT count(*) > 0 FROM runs") == [(True,)]


def test_a_variable_without_quotes_and_a_nested_argument_are_found() -> None:
    with pytest.raises(AssertionError, match="sqlstring"):
        grafana.interpolate("SELECT '$run'", {"run": ["x"]})
    with pytest.raises(AssertionError):
        grafana.expand("SELECT $__nothing(t)", {}, ELAPSED)
    assert ")" in grafana.expand("$__timeFilter(f(t))", {}, ELAPSED).rpartition("AND")[2]


@pytest.mark.root
def test_points_bound_what_a_long_run_reads(timescale: debian_server.Server) -> None:
    """A run of a day: panels read points of a minute, through the index."""
    database = store_lab.make(timescale, "day")
    made(database, runs=1, duration_s=86_400.0, rows_per_s=1)
    bounded(database, "run", {"experiment": ["day"], "run": ["day-1"], "flow": ["f1", "f2"]})


@pytest.mark.root
def test_points_bound_what_many_runs_read(timescale: debian_server.Server) -> None:
    """A day of runs laid over each other: each gives its points of the width that is drawn, and no other is read."""
    database = store_lab.make(timescale, "runs")
    made(database, runs=12, duration_s=7_200.0, rows_per_s=0.1)
    runs = [f"day-{number}" for number in range(1, 13)]
    bounded(database, "compare", {"experiments": ["day"], "runs": runs, "by": ["algorithm"]})


def bounded(database: store_lab.Database, name: str, values: dict[str, list[str]]) -> None:
    """Every panel of a dashboard reads few rows for a day."""
    content = grafana.board(ROOT / f"dashboards/json/{name}.json")
    day = grafana.Range(ZERO_S, ZERO_S + 86_400)
    with connected("reader", database.url) as connection:
        for title, target in grafana.queries(content):
            query = grafana.expand(target["rawSql"], values, day)
            plan = connection.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + query).fetchone()
            assert plan is not None
            read = sum(
                (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
                for node in nodes(plan[0][0]["Plan"])
                if "Relation Name" in node
            )
            assert read < MOST_ROWS, f"{title} reads {read} rows"


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def made(database: store_lab.Database, *, runs: int, duration_s: float, rows_per_s: float) -> None:
    """Runs whose rows the server makes itself, with points of the widths that ingestion would have made."""
    from benchmarks.dashboard_speed import fill

    with connected("writer", database.url, autocommit=True) as connection:
        fill(connection, "day", runs=runs, duration_s=duration_s, rows_per_s=rows_per_s)
    with store_lab.admin(database.server, database.name) as admin:
        admin.execute("ANALYZE")


@pytest.fixture(scope="module")
def server() -> str:
    if not os.environ.get("GRAFANA_URL"):
        pytest.skip(NO_GRAFANA)
    return os.environ["GRAFANA_URL"].rstrip("/")


def call(server: str, path: str, body: object = None) -> Any:
    scheme, _, rest = server.partition("://")
    credentials, _, host = rest.rpartition("@")
    request = urllib.request.Request(
        f"{scheme}://{host}{path}", data=None if body is None else json.dumps(body).encode()
    )
    request.add_header("Content-Type", "application/json")
    if credentials:
        request.add_header("Authorization", "Basic " + base64.b64encode(credentials.encode()).decode())
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def test_grafana_loads_every_dashboard_and_answers_every_panel(server: str, board: dict[str, Any]) -> None:
    """Against the data that this Grafana's own database holds; the quickstart's at least."""
    loaded = call(server, f"/api/dashboards/uid/{board['uid']}")["dashboard"]
    assert [panel["title"] for panel in loaded["panels"]] == [panel["title"] for panel in board["panels"]]
    values: dict[str, list[str]] = {}
    for variable in board["templating"]["list"]:
        frame = ask(
            server,
            {
                "refId": "A",
                "datasource": {"uid": "warpbed"},
                "rawSql": grafana.interpolate(variable["query"], values),
                "format": "table",
            },
        )
        names = [str(value) for value in frame["data"]["values"][0]]
        if variable["name"].startswith("experiment") and "quickstart" in names:
            names = ["quickstart"]  # the latest may have no captures
        values[variable["name"]] = names if variable["multi"] else names[:1]
    span = time_of(board)
    if span is YEARS:
        span = grafana.Range(time.time() - 3e8, time.time() + 86_400)
    for title, target in grafana.queries(board):
        frame = ask(server, {**target, "rawSql": grafana.interpolate(target["rawSql"], values)}, span)
        assert frame["data"]["values"] and frame["data"]["values"][0], f"{title} is empty"


def ask(server: str, query: dict[str, Any], span: grafana.Range = YEARS) -> dict[str, Any]:
    body = {"queries": [{**query, "intervalMs": span.interval_ms, "maxDataPoints": grafana.MAX_DATA_POINTS}],
            "from": str(int(span.start_s * 1000)), "to": str(int(span.end_s * 1000))}  # fmt: skip
    result = call(server, "/api/ds/query", body)["results"][query["refId"]]
    assert "error" not in result, result["error"]
    frame: dict[str, Any] = result["frames"][0]
    return frame


@pytest.mark.root
def test_the_readers_time_limit_ends_a_runaway_query(full: store_lab.Database) -> None:
    with connected("reader", full.url, autocommit=True) as connection:
        assert connection.execute("SHOW statement_timeout").fetchone() == ("30s",)
        connection.execute("SET statement_timeout = '50ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            connection.execute("SELECT count(*) FROM generate_series(1, 1000000000)")
