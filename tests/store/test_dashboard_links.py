# SPDX-License-Identifier: Apache-2.0
"""Following links from dashboard to dashboard, and what stands behind them: real days, real drops, a transfer's own time."""

from __future__ import annotations

import urllib.parse
from typing import Any

import pytest

from base.paths import ROOT
from benchmarks import grafana, store_lab
from dashboards.addresses import REPORTS, ZERO_S, report
from store.connect import connected
from tests import grafana_links
from tests.store import board_data
from tests.store.test_dashboards import ELAPSED, YEARS, chosen, drawn, time_of

pytestmark = [pytest.mark.root]  # filling the database, on a busy machine


@pytest.fixture(params=grafana.BOARDS, ids=lambda path: path.stem)
def board(request: pytest.FixtureRequest) -> dict[str, Any]:
    return grafana.board(request.param)


def test_what_all_puts_into_a_single_value_is_no_error(board: dict[str, Any], full: store_lab.Database) -> None:
    """Nothing, the word itself, or every value: Grafana's versions differ, and a URL may be written by hand."""
    single = [variable for variable in board["templating"]["list"] if not variable["multi"]]
    with connected("reader", full.url) as connection:
        usual = chosen(full, board)
        for variable in single:
            everything = grafana_links.options(connection, variable, usual)
            for values in ([], [grafana_links.ALL], everything):
                assert list(drawn(connection, board, {**usual, variable["name"]: values}, time_of(board)))


def test_an_unticked_list_is_no_error(board: dict[str, Any], full: store_lab.Database) -> None:
    with connected("reader", full.url) as connection:
        usual = chosen(full, board)
        for variable in board["templating"]["list"]:
            if variable["multi"]:
                assert list(drawn(connection, board, {**usual, variable["name"]: []}, time_of(board)))


def test_every_link_from_every_state_opens_a_dashboard_that_shows_what_was_chosen(
    board: dict[str, Any], full: store_lab.Database
) -> None:
    boards = {content["uid"]: content for content in map(grafana.board, grafana.BOARDS)}
    seen: set[str] = set()
    with connected("reader", full.url) as connection:
        for values, says_all in grafana_links.states(connection, board):
            links = [
                grafana_links.address(link["url"], values, says_all)
                for link in board["links"]
                if link["url"] != report()
            ]
            for panel in board["panels"]:
                for url in grafana_links.cell_links(panel):
                    cursor = connection.execute(grafana.expand(panel["targets"][0]["rawSql"], values, time_of(board)))
                    names = [column.name for column in cursor.description or ()]
                    rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
                    links += [grafana_links.of_row(url, row) for row in rows if row.get("verdict") != "failed"]
            for target, parameters in links:
                arrived = grafana_links.opened(connection, boards[target], parameters)
                same = ("run", "runs", "by") if target == board["uid"] else ()
                for name in ("experiment", "experiments", *same):
                    if name in parameters and name in values:
                        assert arrived[name] == values[name]
                if (key := f"{target} {parameters}") in seen:
                    continue
                seen.add(key)
                results = list(drawn(connection, boards[target], arrived, opened_at(boards[target], parameters)))
                if arrived.get("experiments", arrived["experiment"]) not in ([], [""]):
                    assert any(rows for _, _, rows in results), f"{target} shows nothing for {parameters}"
    assert len(seen) >= len(boards) - 1


def test_a_dashboards_report_is_that_of_its_experiment(board: dict[str, Any], full: store_lab.Database) -> None:
    """In every state; Grafana's own router, which knows no such page, leaves a link in a new tab to the browser."""
    links = [link for link in board["links"] if link["url"] == report()]
    if board["uid"] == "warpbed-reproduction":
        assert links == []  # is about theses
        return
    assert [link["targetBlank"] for link in links] == [True]
    with connected("reader", full.url) as connection:
        known = {name for (name,) in connection.execute("SELECT DISTINCT experiment FROM runs").fetchall()}
        for values, says_all in grafana_links.states(connection, board):
            path, parameters = grafana_links.address(links[0]["url"], values, says_all)
            folder, experiment, file = path.removeprefix("/").rsplit("/", 2)
            assert (folder, file, parameters) == (REPORTS, "report.html", {})
            assert urllib.parse.unquote(experiment) in known or values["experiment"] in ([], [""])


def test_a_run_says_how_much_of_it_is_shown(full: store_lab.Database) -> None:
    """Who chooses another run from the list keeps the time of before: the header says so, and its click shows all."""
    content = grafana.board(ROOT / "dashboards/json/run.json")
    (panel,) = [panel for panel in content["panels"] if panel["title"] == "Run"]
    (link,) = grafana_links.cell_links(panel)
    with connected("reader", full.url) as connection:
        values = chosen(full, content)  # 20 s long
        spans = (
            (0, 20, "all of it"),
            (0, 60, "all of it"),
            (0, 5, "5 s of it"),
            (12, 60, "8 s of it"),
            (30, 60, "0 s of it"),
        )
        for start, end, text in spans:
            span = grafana.Range(ZERO_S + start, ZERO_S + end)
            cursor = connection.execute(grafana.expand(panel["targets"][0]["rawSql"], values, span))
            (row,) = cursor.fetchall()
            header = dict(zip([column.name for column in cursor.description or ()], row, strict=True))
            assert header["shown"] == text
            target, parameters = grafana_links.of_row(link, header)
            assert target == "warpbed-run" and parameters["var-run"] == values["run"]
            assert opened_at(content, parameters).end_s == ZERO_S + 20


def opened_at(content: dict[str, Any], parameters: dict[str, list[str]]) -> grafana.Range:
    if "from" not in parameters:
        return time_of(content)
    start_s, end_s = (float(parameters[name][0]) / 1000 for name in ("from", "to"))
    assert start_s == ZERO_S < end_s, "a run's own time, and as long as it is"
    return grafana.Range(start_s, end_s)


def test_a_link_with_all_opens_the_latest_experiment_where_one_is_shown(full: store_lab.Database) -> None:
    """A first-time user's first click: from the list of all experiments to a run."""
    home, run = (grafana.board(ROOT / f"dashboards/json/{name}.json") for name in ("experiments", "run"))
    (link,) = [link["url"] for link in home["links"] if link["title"] == "Run"]
    with connected("reader", full.url) as connection:
        values = grafana_links.opened(connection, home, {})
        target, parameters = grafana_links.address(link, values, {"experiments", "verdict"})
        assert target == "warpbed-run" and set(parameters) == {"var-experiment", "from", "to"}
        latest = full.rows("SELECT experiment FROM runs ORDER BY run_id DESC LIMIT 1")[0][0]
        assert parameters["var-experiment"] == [latest]
        assert grafana_links.opened(connection, run, parameters)["experiment"] == [latest]


def test_drops_of_the_calibration_are_not_drawn(full: store_lab.Database) -> None:
    """Each panel's sum is what the kernel's counter grew by during the run; so is what `store ask` says."""
    content = grafana.board(ROOT / "dashboards/json/run.json")
    values = chosen(full, content)
    counted = "SELECT max(drops) - min(drops), min(drops) FROM queues JOIN runs USING (run_id) WHERE run = '{}' AND interface = 'r1-eth1'"
    ((grown, before),) = full.rows(counted.format(values["run"][0]))
    assert before >= board_data.DROPPED_BEFORE and grown > 0
    with connected("reader", full.url) as connection:
        by_panel = {(title, ref): rows for title, ref, rows in drawn(connection, content, values, ELAPSED)}
    bottleneck = [row[2] for row in by_panel["Drops and marks", "A"] if row[1] == "bottleneck r1-eth1 drops"]
    assert sum(bottleneck) == grown
    for width_ms in (10, 100, 1000):
        question = (
            "SELECT sum(drops), sum(marks) FROM queue_points JOIN runs USING (run_id) "
            f"WHERE run = '{values['run'][0]}' AND interface = 'r1-eth1' AND width_ms = {width_ms}"
        )
        assert full.rows(question) == [(grown, 0)]


def test_a_virtual_campaign_has_its_own_days_and_its_receivers(full: store_lab.Database) -> None:
    content = grafana.board(ROOT / "dashboards/json/campaign.json")
    with connected("reader", full.url) as connection:
        values = chosen(full, content)
        assert values["receiver"] == list(board_data.RECEIVERS)
        days = grafana.Range(ZERO_S, ZERO_S + 7 * 86_400)
        by_panel = {title: rows for title, _, rows in drawn(connection, content, values, days)}
    assert by_panel["Transfers"] == [(str(len(board_data.TRANSFERS)),)]
    # eight transfers, six hours after each other: two days, four hours of the day
    assert {row[0] for row in by_panel["Goodput by time of day"]} == {"00 h", "06 h", "12 h", "18 h"}
    times = sorted({row[0].timestamp() for row in by_panel["Goodput by algorithm"]})
    assert [round((time - ZERO_S) / board_data.PAUSE_S) for time in times] == list(range(len(board_data.TRANSFERS)))
    assert {row[0] for row in by_panel["Paths"]} == set(board_data.RECEIVERS)
    # the hour, the algorithm, and its goodput: a count is no rate
    assert {(*row[1:2], type(row[2]), len(row)) for row in by_panel["Goodput by time of day"]} == {
        ("cubic", float, 3),
        ("reno", float, 3),
    }


def test_a_transfers_goodput_is_that_of_its_own_time(full: store_lab.Database) -> None:
    rows = full.rows(
        "SELECT m.value, f.goodput_mbps FROM run_metrics m JOIN flows f USING (run_id) JOIN runs r USING (run_id) "
        f"WHERE m.name = 'flow_goodput_mbps' AND r.experiment = '{board_data.CAMPAIGN}'"
    )
    assert len(rows) == len(board_data.TRANSFERS)
    for value, of_flow in rows:
        assert value == pytest.approx(of_flow)


def test_defaults_and_first_rows_are_what_people_ask_for(full: store_lab.Database) -> None:
    sweep, run = (grafana.board(ROOT / f"dashboards/json/{name}.json") for name in ("sweep", "run"))
    with connected("reader", full.url) as connection:
        opened = grafana_links.opened(connection, sweep, {"var-experiment": ["quickstart"]})
        assert opened["metric"] == ["utilization"]
        by_panel = {title: rows for title, _, rows in drawn(connection, run, chosen(full, run), ELAPSED)}
    assert [row[4] for row in by_panel["Metrics"]][:4] == [
        "utilization",
        "goodput_mbps",
        "queue_mean_packets",
        "rtt_mean_ms",
    ]
    assert by_panel["Queue"][0][1].startswith("bottleneck r1-eth1"), "the bottleneck's queue comes first"


def test_the_sweep_opens_with_what_varies(full: store_lab.Database) -> None:
    """A parameter with one value comes after those that have more, wherever the alphabet has it; the algorithm after others."""
    content = grafana.board(ROOT / "dashboards/json/sweep.json")
    with connected("writer", full.url) as connection:
        for name, value in (("aaa", "'one'"), ("zzz", "'one'"), ("delay", "r.seed::text")):
            connection.execute(
                "INSERT INTO run_params (run_id, name, value) "
                f"SELECT r.run_id, '{name}', {value} FROM runs r WHERE r.experiment = 'quickstart'"
            )
        opened = grafana_links.opened(connection, content, {"var-experiment": ["quickstart"]})
        assert opened["parameter"] == ["buffer"] and opened["second"] == ["delay"]
        opened = grafana_links.opened(
            connection, content, {"var-experiment": ["quickstart"], "var-parameter": ["delay"]}
        )
        assert opened["second"] == ["buffer"]
        connection.rollback()


def test_many_marks_of_a_kind_become_one_that_says_so(full: store_lab.Database) -> None:
    """And none is left out in silence: the mark tells how many there are, and a shorter time shows them."""
    content = grafana.board(ROOT / "dashboards/json/run.json")
    values = chosen(full, content)
    (mark,) = [entry["target"]["rawSql"] for entry in content["annotations"]["list"] if entry["name"] == "Losses"]
    run = f"(SELECT run_id FROM runs WHERE experiment = 'quickstart' AND run = '{values['run'][0]}')"
    with connected("writer", full.url) as connection:
        connection.execute(
            "INSERT INTO events (run_id, time, t_s, flow, kind, text) "
            f"SELECT {run}, now(), 10 + i * 0.1, '', 'loss', 'x' FROM generate_series(1, 60) i"
        )
        rows = connection.execute(grafana.expand(mark, values, ELAPSED)).fetchall()
        assert len(rows) == 1
        assert int(rows[0][1].split()[0]) >= 60 and rows[0][1].endswith("marks of this kind from here on: zoom in")
        few = grafana.Range(ZERO_S + 12, ZERO_S + 14)
        assert 20 <= len(connection.execute(grafana.expand(mark, values, few)).fetchall()) <= 50
        connection.rollback()


def test_a_time_picker_is_there_only_where_it_does_something(board: dict[str, Any]) -> None:
    queries = [target["rawSql"] for _, target in grafana.queries(board)]
    asks_for_time = any("$__timeFilter" in sql or "$__unixEpochFrom" in sql for sql in queries)
    assert bool(board.get("timepicker", {}).get("hidden")) != asks_for_time


def test_a_verdict_has_one_colour_everywhere() -> None:
    seen: dict[str, set[str]] = {}
    for path in grafana.BOARDS:
        for panel in grafana.board(path)["panels"]:
            for override in panel["fieldConfig"]["overrides"] or ():
                for one in override["properties"]:
                    if one["id"] == "mappings" and one["value"][0]["type"] == "value":
                        for verdict, shown in one["value"][0]["options"].items():
                            seen.setdefault(verdict, set()).add(shown.get("color", ""))
                    elif one["id"] == "color" and override["matcher"]["options"] in (
                        "valid",
                        "suspect",
                        "invalid",
                        "failed",
                    ):
                        seen.setdefault(override["matcher"]["options"], set()).add(one["value"]["fixedColor"])
    seen = {
        verdict: colours for verdict, colours in seen.items() if verdict in ("valid", "suspect", "invalid", "failed")
    }
    assert seen == {"valid": {"green"}, "suspect": {"orange"}, "invalid": {"red"}, "failed": {"dark-red"}}


def test_a_dashboard_that_shows_one_experiment_begins_with_the_latest(full: store_lab.Database) -> None:
    """By its own address, and Compare from All as well, which would lay every run of every experiment over each other."""
    order = [name for (name,) in full.rows("SELECT experiment FROM runs GROUP BY 1 ORDER BY max(ingested_at) DESC")]
    complete = {name for (name,) in full.rows("SELECT experiment FROM runs WHERE status = 'complete'")}
    latest = next(name for name in order if name in complete)
    assert latest != min(complete), "not the first of the alphabet"
    with connected("reader", full.url) as connection:
        for name in ("run", "sweep", "compare"):
            content = grafana.board(ROOT / f"dashboards/json/{name}.json")
            values = grafana_links.opened(connection, content, {})
            assert values.get("experiments", values["experiment"]) == [latest], name
        home, compare = (grafana.board(ROOT / f"dashboards/json/{name}.json") for name in ("experiments", "compare"))
        (link,) = [link["url"] for link in home["links"] if link["title"] == "Compare"]
        values = grafana_links.opened(connection, home, {})
        _, parameters = grafana_links.address(link, values, {"experiments", "verdict"})
        assert grafana_links.opened(connection, compare, parameters)["experiments"] == [latest]
        for few in (["quickstart"], sorted([latest, "quickstart"])):
            values = grafana_links.opened(connection, home, {"var-experiments": few})
            _, parameters = grafana_links.address(link, values, set())
            assert grafana_links.opened(connection, compare, parameters)["experiments"] == few
        values = grafana_links.opened(connection, home, {})
        (table,) = [panel for panel in home["panels"] if panel["title"] == "Verdicts by experiment"]
        rows = connection.execute(grafana.expand(table["targets"][0]["rawSql"], values, YEARS)).fetchall()
        assert [row[0] for row in rows] == order
        of_quickstart = dict(
            full.rows(
                "SELECT coalesce(nullif(verdict, ''), status), count(*) FROM runs WHERE experiment = 'quickstart' GROUP BY 1"
            )
        )
        (counts,) = [row[3:7] for row in rows if row[0] == "quickstart"]
        assert counts == tuple(of_quickstart.get(verdict) for verdict in ("valid", "suspect", "invalid", "failed"))


def test_a_legend_names_the_queues_that_dropped_and_no_other(full: store_lab.Database) -> None:
    content = grafana.board(ROOT / "dashboards/json/run.json")
    values = chosen(full, content)
    run = f"run_id = (SELECT run_id FROM runs WHERE experiment = 'quickstart' AND run = '{values['run'][0]}')"
    asked = f"SELECT interface FROM queue_points WHERE {run} AND width_ms = 100 GROUP BY 1 HAVING sum(drops) > 0"
    dropped = {name for (name,) in full.rows(asked)}
    with connected("writer", full.url) as connection:
        by_panel = {(title, ref): rows for title, ref, rows in drawn(connection, content, values, ELAPSED)}
        names = {row[1].split()[-2] for row in by_panel["Drops and marks", "A"]}
        assert names == dropped != set()
        assert {row[1] for row in by_panel["Drops and marks", "B"]} == {"no marks"}
        assert {row[2] for row in by_panel["Drops and marks", "B"]} == {0.0}
        # a network of many routers: the bottleneck's queue, and those that hold most
        for number in range(9):
            connection.execute(
                "INSERT INTO queue_points SELECT (p).* FROM (SELECT jsonb_populate_record(q, jsonb_build_object("
                f"'interface', 'r7-eth{number}', 'backlog_packets', {500 + number})) AS p FROM queue_points q "
                f"WHERE {run} AND interface = 'r1-eth1') x"
            )
        by_panel = {(title, ref): rows for title, ref, rows in drawn(connection, content, values, ELAPSED)}
        shown = {row[1] for row in by_panel["Queue", "A"]}
        assert shown == {"bottleneck r1-eth1 mean", *(f"r7-eth{number} mean" for number in range(5, 9))}
        connection.rollback()


def test_marks_do_not_cover_what_they_mark() -> None:
    """From Grafana 10 on an annotation may leave panels out, by their numbers."""
    content = grafana.board(ROOT / "dashboards/json/run.json")
    titles = {panel["id"]: panel["title"] for panel in content["panels"]}
    for mark in content["annotations"]["list"]:
        assert mark["filter"]["exclude"] is True
        assert [titles[number] for number in mark["filter"]["ids"]] == ["Retransmitted", "Drops and marks"]


def test_a_table_without_a_row_says_so_in_words_and_an_empty_cell_does_not(board: dict[str, Any]) -> None:
    for panel in board["panels"]:
        if panel["type"] == "table":
            assert len(panel["fieldConfig"]["defaults"]["noValue"].split()) > 5, panel["title"]
            cells = [one for one in panel["fieldConfig"]["overrides"] if one["matcher"]["options"] == "/.*/"]
            assert [one["properties"] for one in cells] == [[{"id": "noValue", "value": "–"}]], panel["title"]


def test_a_campaign_says_how_many_of_its_transfers_are_shown(full: store_lab.Database) -> None:
    content = grafana.board(ROOT / "dashboards/json/campaign.json")
    first = grafana.Range(ZERO_S, ZERO_S + 2.5 * board_data.PAUSE_S)
    with connected("reader", full.url) as connection:
        by_panel = {title: rows for title, _, rows in drawn(connection, content, chosen(full, content), first)}
    assert by_panel["Transfers"] == [(f"3 of {len(board_data.TRANSFERS)}",)]


def test_a_campaigns_whole_length_ends_a_minute_after_its_last_transfer_begins(full: store_lab.Database) -> None:
    content = grafana.board(ROOT / "dashboards/json/campaign.json")
    (link,) = [link["url"] for link in content["links"] if link["title"] == "Whole length"]
    with connected("reader", full.url) as connection:
        values = grafana_links.opened(connection, content, {"var-receiver": ["far"]})
        _, parameters = grafana_links.address(link, values, set())
        assert grafana_links.opened(connection, content, parameters)["receiver"] == ["far"]
    (begin,), (end,) = parameters["from"], parameters["to"]
    last_s = board_data.PAUSE_S * (len(board_data.TRANSFERS) - 1)
    assert int(begin) == ZERO_S * 1000
    assert last_s + 60 <= int(end) / 1000 - ZERO_S <= last_s + 62
