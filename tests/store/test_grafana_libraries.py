# SPDX-License-Identifier: Apache-2.0
"""What the own code of Grafana 9.4, of the pinned and of the current version makes of the dashboards: no server is needed for that.

Each panel's SQL is asked of a real database; its answer goes through Grafana's transformations, field overrides, units and colours.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from analysis import palette
from base.paths import ROOT
from benchmarks import grafana, store_lab
from dashboards.looks import DASHES, JOINER
from dashboards.parts import NO_DATA
from store.connect import connected
from tests import grafana_libraries
from tests.store import board_data
from tests.store.test_dashboards import chosen, time_of

pytestmark = [pytest.mark.root]  # filling the database, on a busy machine
AGAINST = "${metric:text}${unit:text} against ${parameter:text}${base:text}"
PARAMETER = "${parameter:text}${base:text}"
"""The axis as newer versions name its field; the harness puts no variables in."""
PEAKS = "rgba(140, 140, 140, 0.6)"
"""Of the greatest values of an interval, whatever their flow's algorithm."""
Panels = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture(scope="module")
def asked(full: store_lab.Database) -> Panels:
    """Every panel with its answers, by (dashboard, number and title)."""
    answers = {}
    for path in grafana.BOARDS:
        content = grafana.board(path)
        values = chosen(full, content)
        with connected("reader", full.url) as connection:
            for panel in content["panels"]:
                frames = []
                for target in panel["targets"]:
                    cursor = connection.execute(grafana.expand(target["rawSql"], values, time_of(content)))
                    columns = [column.name for column in cursor.description or ()]
                    frames.append(grafana_libraries.frame(target, columns, cursor.fetchall()))
                answers[path.stem, f"{panel['id']} {panel['title']}"] = {
                    "title": panel["title"], "type": panel["type"],
                    "transformations": panel.get("transformations") or [],
                    "fieldConfig": panel["fieldConfig"], "frames": frames,
                }  # fmt: skip
    return answers


@pytest.fixture(scope="module")
def folder() -> Path:
    return grafana_libraries.installed()


@pytest.fixture(scope="module", params=grafana_libraries.VERSIONS)
def drawn(request: pytest.FixtureRequest, folder: Path, asked: Panels) -> Panels:
    """What a version of Grafana shows of each panel."""
    return dict(zip(asked, grafana_libraries.check(folder, request.param, list(asked.values())), strict=True))


def one(drawn: Panels, dashboard: str, title: str) -> dict[str, Any]:
    (only,) = (panel for (board, name), panel in drawn.items() if board == dashboard and name.endswith(f" {title}"))
    return only


def test_every_panel_is_understood_and_shows_something(drawn: Panels) -> None:
    """Units, colours, matchers and transformations are known by these names, and values are left after them."""
    assert len(drawn) > 50
    for place, panel in drawn.items():
        assert panel["errors"] == [], place
        values = [value for frame in panel["frames"] for field in frame["fields"] for value in field["values"]]
        assert any(value is not None for value in values), place


def test_time_series_have_a_time_and_numbers(asked: Panels, drawn: Panels) -> None:
    for place, panel in asked.items():
        if panel["type"] == "timeseries":
            for frame in drawn[place]["frames"]:
                types = [field["type"] for field in frame["fields"]]
                assert types[0] == "time" and set(types[1:]) == {"number"}, place


def test_overrides_find_their_columns(asked: Panels, drawn: Panels) -> None:
    """Of slots of bands, of algorithms and of kinds of lines more may be there than drawn; every other names something that is there."""
    for place, panel in drawn.items():
        lost = [str(matcher["options"]) for matcher in panel["unmatched"]]
        own = [name for name in lost if not name.lstrip("/^")[:1].isdigit() and not name.startswith(("/^(", "/(^"))]
        assert [name for name in own if name != NO_DATA] == [], place  # a series where there is no other
        assert len(lost) < len(asked[place]["fieldConfig"]["overrides"]) or not lost, place


@pytest.mark.parametrize(
    ("dashboard", "title", "axis", "series"),
    [
        ("compare", "Throughput against delay", "Mean RTT, ms", {"reno", "cubic", "medley"}),
        ("sweep", AGAINST, "Value of the parameter",
         {"cubic", "medley", "reno", "cubic · low 95 %", "cubic · high 95 %"}),
        ("compare", "Distribution of RTT by algorithm", "Round-trip time, ms", {"reno", "cubic", "medley"}),
    ],
)  # fmt: skip
def test_charts_over_a_number_have_a_numeric_axis_and_a_series_per_algorithm(
    drawn: Panels, dashboard: str, title: str, axis: str, series: set[str]
) -> None:
    (frame,) = one(drawn, dashboard, title)["frames"]
    x, *rest = frame["fields"]
    assert (axis if x["name"] == PARAMETER else x["name"], x["type"]) == (axis, "number")
    if dashboard == "sweep":
        assert x["config"]["displayName"] == PARAMETER, "the axis says what it is, and in which unit"
    assert x["values"] and all(isinstance(value, int | float) for value in x["values"])
    assert {field["name"] for field in rest} == series
    assert {field["type"] for field in rest} == {"number"}
    assert all(isinstance(value, int | float) for field in rest for value in field["values"]), "null is drawn as 0"


def test_charts_over_a_number_draw_the_points_that_are_there_and_no_other(
    drawn: Panels, full: store_lab.Database
) -> None:
    """Of several algorithms at different delays most pairs have no value."""
    expected = full.rows(
        "SELECT r.cca, count(*) FROM runs r JOIN flows f USING (run_id) WHERE r.experiment = 'quickstart' AND f.flow = 'f1' GROUP BY 1"
    )
    panel = one(drawn, "compare", "Throughput against delay")
    (frame,) = panel["frames"]
    _, *series = frame["fields"]
    assert {field["name"]: sum(field["drawn"]) for field in series} == dict(expected)
    assert all(field["config"]["min"] == 0 for field in series)
    for dashboard, title in (("compare", "Throughput against delay"), ("sweep", AGAINST)):
        x, *fields = one(drawn, dashboard, title)["frames"][0]["fields"]
        assert "min" not in x["config"], "the horizontal axis fits the values"
        for field in fields:
            assert field["config"]["custom"]["axisLabel"], "or the axis has the name of the first series"
            assert all(value > 0 for value, is_drawn in zip(field["values"], field["drawn"], strict=True) if is_drawn)
        assert not all(all(field["drawn"]) for field in fields), "the data has pairs without a value"


def test_a_seed_that_no_number_of_a_browser_holds_is_shown_as_it_is(drawn: Panels, full: store_lab.Database) -> None:
    ((seed,),) = full.rows("SELECT max(seed) FROM runs WHERE experiment = 'quickstart'")
    assert seed == board_data.LARGE_SEED != float(seed)
    columns = [
        (board, field)
        for (board, _), panel in drawn.items()
        for frame in panel["frames"]
        for field in frame["fields"]
        if field["name"].lower() == "seed"
    ]
    assert {board for board, _ in columns} == {"experiments", "run", "sweep"}
    for board, field in columns:
        assert field["type"] == "string" and (str(seed) in field["texts"] or board == "run"), board


def test_a_cell_without_a_value_does_not_say_that_there_is_no_data(asked: Panels, drawn: Panels) -> None:
    empty = [
        text
        for place, panel in drawn.items()
        if asked[place]["type"] == "table"
        for frame in panel["frames"]
        for field in frame["fields"]
        for value, text in zip(field["values"], field["texts"], strict=True)
        if value is None
    ]
    assert empty and not any("no data" in text for text in empty)


def test_bands_fill_down_to_a_series_that_is_there(drawn: Panels) -> None:
    panel = one(drawn, "compare", "Goodput by group")
    (frame,) = panel["frames"]
    fields = {field["name"]: field["config"] for field in frame["fields"]}
    filled_to = {
        name: config["custom"]["fillBelowTo"]
        for name, config in fields.items()
        if "fillBelowTo" in (config["custom"] or {})
    }
    assert filled_to == {"2 high 95 %": "2 low 95 %"}, (
        "of the settings one has two runs that count: cubic with 50 packets"
    )
    cubic = {"mode": "fixed", "fixedColor": palette.COLOURS[palette.place("cubic")]}
    for name in ("cubic · 50p", f"cubic · {JOINER}{DASHES[1]}250p", "2 high 95 %", "2 low 95 %"):
        assert fields[name]["color"] == cubic, name
    assert fields["2 low 95 %"]["custom"]["hideFrom"]["legend"] is True


def test_settings_of_one_algorithm_are_told_apart_by_their_lines(drawn: Panels) -> None:
    """By their numbers, not their letters: 50p before 250p, the same for each algorithm and seed."""
    for title in ("Goodput by group", "Throughput"):
        (frame,) = one(drawn, "compare", title)["frames"]
        styles = {field["name"]: (field["config"]["custom"] or {}).get("lineStyle") for field in frame["fields"]}
        small = [style for name, style in styles.items() if "50p" in name and DASHES[1] not in name]
        large = [style for name, style in styles.items() if f"{JOINER}{DASHES[1]}250p" in name]
        assert small and small == [None] * len(small), title
        assert large and large == [{"fill": "dash", "dash": [10, 6]}] * len(large), title


def test_the_legend_of_runs_has_one_seed_of_each_setting(drawn: Panels) -> None:
    """The least: of cubic's runs with 50 packets that with seed 1. Every setting has one, whichever seeds others have."""
    for title in ("Throughput", "Congestion window", "Round-trip time", "In flight", "Jain's index"):
        (frame,) = one(drawn, "compare", title)["frames"]
        settings: dict[str, list[tuple[int, bool]]] = {}
        for field in frame["fields"][1:]:
            setting, _, seed = field["name"].replace(JOINER, "").rpartition(", seed ")
            listed = not ((field["config"]["custom"] or {}).get("hideFrom") or {}).get("legend")
            settings.setdefault(setting, []).append((int(seed), listed))
        assert settings["cubic · 50p"] == [(1, True), (board_data.LARGE_SEED, False)], title
        for setting, seeds in settings.items():
            assert [listed for _, listed in sorted(seeds)] == [True] + [False] * (len(seeds) - 1), (title, setting)


def test_the_pinned_libraries_are_those_of_the_pinned_grafana() -> None:
    image = re.search(r"grafana/grafana:([\d.]+)@", (ROOT / "dashboards/images.yml").read_text())
    package = json.loads((ROOT / "tests/grafana_libraries/package.json").read_text())
    assert image is not None and package["dependencies"]["grafana-pinned"] == f"npm:@grafana/data@{image[1]}"


def test_an_algorithm_has_one_colour_in_every_panel(asked: Panels, drawn: Panels) -> None:
    seen: dict[str, set[str]] = {}
    for where, panel in drawn.items():
        if asked[where]["type"] in ("timeseries", "xychart", "barchart"):
            for frame in panel["frames"]:
                for field in frame["fields"]:
                    name = field["name"].split(" · ")[0]
                    if name in palette.ALGORITHMS:
                        seen.setdefault(name, set()).add(str((field["config"].get("color") or {}).get("fixedColor")))
    colours = {name: palette.SCREEN[palette.place(name) % len(palette.SCREEN)] for name in ("cubic", "medley", "reno")}
    assert colours.keys() == seen.keys()
    for name, colour in colours.items():
        assert colour in seen[name] <= {*palette.shades(colour), PEAKS}, name


def test_bars_of_algorithms_have_their_colours(asked: Panels, drawn: Panels) -> None:
    """Every bar chart whose bars stand side by side by algorithm, in Sweep and in Campaign."""
    by_algorithm = {}
    for where, panel in drawn.items():
        if asked[where]["type"] == "barchart" and asked[where]["transformations"]:
            (frame,) = panel["frames"]
            by_algorithm[where[1].partition(" ")[2]] = {
                field["name"]: field["config"]["color"] for field in frame["fields"][1:]
            }
    titles = ("${metric:text}${unit:text} by value", "Goodput by time of day", "Completion time by size and algorithm")
    assert set(by_algorithm) == set(titles)
    for title, colours in by_algorithm.items():
        assert {"cubic", "reno"} <= colours.keys(), title
        for name, colour in colours.items():
            assert colour == {"mode": "fixed", "fixedColor": palette.SCREEN[palette.place(name)]}, (title, name)


def test_goodput_by_time_of_day_is_a_bar_per_hour_and_algorithm(drawn: Panels, full: store_lab.Database) -> None:
    """And no other: an hour's count of transfers stood beside it once, as megabits. Transfers every six hours fill four hours."""
    (frame,) = one(drawn, "campaign", "Goodput by time of day")["frames"]
    hours, *series = frame["fields"]
    starts = [board_data.PAUSE_S * (case.seed - 1) % 86_400 // 3600 for case in board_data.TRANSFERS]
    assert hours["values"] == [f"{hour:02.0f} h" for hour in sorted(set(starts))]
    assert {field["name"] for field in series} == {"cubic", "reno"}
    goodput = dict(
        full.rows(
            "SELECT r.seed, f.goodput_mbps FROM runs r JOIN flows f USING (run_id) "
            f"WHERE r.experiment = '{board_data.CAMPAIGN}'"
        )
    )
    for field in series:
        assert field["config"]["unit"] == "Mbits"
        for hour, value in zip(hours["values"], field["values"], strict=True):
            of_hour = [
                goodput[case.seed]
                for case, start in zip(board_data.TRANSFERS, starts, strict=True)
                if f"{start:02.0f} h" == hour and case.cca == field["name"]
            ]
            assert value == (pytest.approx(sum(of_hour) / len(of_hour)) if of_hour else None), (field["name"], hour)


def test_flows_of_one_algorithm_have_looks_of_their_own(folder: Path) -> None:
    """Ten of reno's: three shades, three times as many with dashes, then the first again; and one of cubic's, whose own first it is."""
    flows = [*(f"reno · {JOINER * place}f{place + 1}" for place in range(10)), "cubic · f11", "f12"]
    config = grafana.board(ROOT / "dashboards/json/run.json")["panels"][2]["fieldConfig"]
    frame = {
        "fields": [
            {"name": "time", "type": "time", "values": [0]},
            *({"name": name, "type": "number", "values": [1]} for name in flows),
        ]
    }
    for version in grafana_libraries.VERSIONS:
        (panel,) = grafana_libraries.check(
            folder, version, [{"fieldConfig": config, "transformations": [], "frames": [frame]}]
        )
        looks = []
        for field in panel["frames"][0]["fields"][1:]:
            dash = ((field["config"]["custom"] or {}).get("lineStyle") or {}).get("dash", [])
            looks.append(((field["config"].get("color") or {}).get("fixedColor"), tuple(dash)))
        reno, cubic = (palette.SCREEN[palette.place(name) % len(palette.SCREEN)] for name in ("reno", "cubic"))
        assert {colour for colour, _ in looks[:9]} == set(palette.shades(reno))
        assert len(set(looks[:9])) == 9 and looks[9] == looks[0] == (reno, ())
        assert looks[10] == (cubic, ())


def test_the_heat_map_has_a_row_and_a_column_per_value_and_colours_its_cells(drawn: Panels) -> None:
    (frame,) = one(drawn, "sweep", "Heat map")["frames"]
    head, *cells = frame["fields"]
    # the harness puts no variables in, and the current version calls a field what it shows
    assert head["name"] in ("first\\second", "${parameter:text} \\ ${second:text}")
    assert head["config"]["custom"]["displayMode"] == "auto"
    assert cells
    for field in cells:
        assert field["config"]["color"]["mode"] == "continuous-BlPu"
        assert field["config"]["custom"]["displayMode"] == "color-background-solid"


def test_units_and_verdicts_are_shown_in_words(drawn: Panels) -> None:
    (frame,) = one_table(drawn)["frames"]
    fields = {
        {"duration_s": "Length"}.get(field["name"], field["name"].capitalize()): field for field in frame["fields"]
    }
    assert fields["Length"]["text"] == "20 s"
    assert fields["Verdict"]["text"] in ("valid", "suspect", "invalid", "failed")
    assert fields["Verdict"]["colour"]


def one_table(drawn: Panels) -> dict[str, Any]:
    """The table of runs; a number above it has the same title."""
    return next(panel for (board, _), panel in drawn.items() if board == "experiments" and any(
        field["name"].lower() == "verdict" for frame in panel["frames"] for field in frame["fields"]))  # fmt: skip


@pytest.mark.parametrize("version", grafana_libraries.VERSIONS)
def test_what_grafana_does_not_know_is_found(folder: Path, version: str) -> None:
    override = {"matcher": {"id": "byName", "options": "a"}, "properties": [{"id": "unit", "value": "furlongs"}]}
    panel = {"fieldConfig": {"defaults": {"color": {"mode": "plaid"}}, "overrides": [override]},
        "transformations": [{"id": "knit"}],
             "frames": []}  # fmt: skip
    (answer,) = grafana_libraries.check(folder, version, [panel])
    assert answer["errors"] == ["no colour mode plaid", "no unit furlongs", "no transformation knit"]
