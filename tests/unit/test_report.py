# SPDX-License-Identifier: Apache-2.0
"""The report as text: complete, escaped, small, the same every time. tests/browser/test_report_browser.py looks at it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis.report import build, topology, write_report
from analysis.report.build import embed
from analysis.report.series import FEWEST_BUCKETS, MOST_BUCKETS, buckets_for, run_series
from analysis.report.settings import settings_of
from analysis.results import load_run
from benchmarks.make_results import Case, make_results, quickstart_cases

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = "<img src=x onerror=alert(1)></script><script>alert(2)</script>\u2028\"'&"


class Tags(HTMLParser):
    """The tags with their attributes, and the page's text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def data_of(html: str) -> Any:
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert match
    return json.loads(match[1])


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_results(tmp_path_factory.mktemp("results"), duration_s=6.0)


def test_the_page_needs_nothing_from_elsewhere(quickstart: Path) -> None:
    html = build(quickstart)
    for tag, attributes in Tags(html).tags:
        assert tag not in ("link", "img", "iframe"), tag
        for name in ("src", "href"):
            value = attributes.get(name)
            assert value is None or value.startswith("#"), (tag, value)
    assert "url(" not in html.replace("url(#", "")


def test_the_page_says_all_that_a_reader_asks(quickstart: Path) -> None:
    text = Tags(build(quickstart)).text
    for phrase in (
        "Does Medley hold the link",
        "50 Mbit/s · 48 ms",
        "does not hold",
        "not comparable",
        "6.1.0-warpbed",
    ):
        assert phrase in text
    assert "./warpbed run experiments/quickstart.yml" in text
    for case in quickstart_cases():
        assert case.name in text


def test_the_same_results_give_the_same_page(quickstart: Path) -> None:
    assert build(quickstart) == build(quickstart)


def test_strings_of_users_are_text_and_nothing_else(tmp_path: Path) -> None:
    folder = make_results(
        tmp_path,
        [Case("reno", 50, 1, params={HOSTILE: HOSTILE}), Case("cubic", 50, 1, params={HOSTILE: "b"})],
        duration_s=2.0,
        spec={"title": HOSTILE, "question": HOSTILE, "expectations": [{"metric": HOSTILE, "max": 1}, HOSTILE]},
    )
    file = next(folder.iterdir()) / "run.json"
    run = json.loads(file.read_text())
    run["environment"] = {HOSTILE: HOSTILE, "topology": {"nodes": [{"name": HOSTILE, "kind": HOSTILE}], "links": []}}
    run["verdict"] = {"value": HOSTILE, "reasons": [{"rule": HOSTILE, "severity": HOSTILE, "message": HOSTILE}]}
    file.write_text(json.dumps(run))
    html = build(folder)
    tags = Tags(html)
    assert [tag for tag, _ in tags.tags].count("script") == 2
    assert "img" not in [tag for tag, _ in tags.tags]
    assert not any(name.startswith("on") for _, attributes in tags.tags for name in attributes)
    assert HOSTILE in tags.text
    assert data_of(html)["runs"][0]["attributes"][HOSTILE] in (HOSTILE, "b")


def test_embedded_data_cannot_end_its_element() -> None:
    text = embed({"</script>": ["<!--", "\u2028", "&"]})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"</script>": ["<!--", "\u2028", "&"]}


def test_failed_invalid_and_cut_off_runs_are_shown_as_such(tmp_path: Path) -> None:
    reasons = ({"rule": "netem-drops", "severity": "invalid", "message": "netem dropped 12 packets"},)
    cases = [
        Case("reno", 50, 1),
        Case("reno", 50, 2, kind="failed"),
        Case("cubic", 50, 1, kind="cut-off"),
        Case("cubic", 50, 2, verdict="invalid", reasons=reasons),
    ]
    html = build(make_results(tmp_path, cases, duration_s=2.0))
    text = Tags(html).text
    for phrase in ("netem dropped 12 packets", "iperf3 ended with 1", "no run.json"):
        assert phrase in text
    for word in ("valid", "failed", "unreadable", "invalid"):
        assert f'class="badge {word}"' in html
    data = data_of(html)
    assert [cell["attributes"]["cca"] for cell in data["cells"] if cell["metrics"]] == ["reno"]
    assert {run["standing"] for run in data["runs"]} == {"valid", "invalid"}


def test_without_a_complete_run_the_page_says_so(tmp_path: Path) -> None:
    html = build(make_results(tmp_path, [Case("reno", 50, 1, kind="failed")], duration_s=2.0))
    assert "No run of this experiment is complete" in html
    (tmp_path / "empty").mkdir()
    assert "The folder holds no runs" in build(tmp_path / "empty")


def test_runs_of_two_versions_of_an_experiment_are_noticed(tmp_path: Path) -> None:
    folder = make_results(tmp_path, [Case("reno", 50, 1), Case("reno", 50, 1, flows=2)], duration_s=2.0)
    assert "the same parameters and seed" in build(folder)
    assert "the same parameters and seed" not in build(folder, [Case("reno", 50, 1).name])


def test_damaged_records_are_reported_and_the_rest_is_drawn(tmp_path: Path) -> None:
    folder = make_results(tmp_path, [Case("reno", 50, 1), Case("reno", 50, 2)], duration_s=2.0)
    (folder / Case("reno", 50, 1).name / "records" / "acks.parquet").write_bytes(b"PAR1")
    broken, whole = data_of(build(folder))["runs"]
    assert "not a readable Parquet file" in broken["problem"]
    assert whole["series"]


def test_series_keep_every_extreme(tmp_path: Path) -> None:
    folder = make_results(tmp_path, [Case("cubic", 250, 1)], duration_s=20.0)
    run = load_run(next(folder.iterdir()))
    coarse = {entry["figure"]: entry for entry in run_series(run, 40, 20.0)}
    fine = {entry["figure"]: entry for entry in run_series(run, 4000, 20.0)}
    for name in ("queue", "cwnd", "rtt", "throughput"):
        extremes = []
        for entry in (coarse[name], fine[name]):
            low = [value for value in entry["lo"] if value is not None]
            high = [value for value in entry.get("hi", entry["lo"]) if value is not None]
            extremes.append((min(low), max(high)))
        assert extremes[0] == extremes[1], name
    assert len(coarse["queue"]["lo"]) == 40
    assert coarse["cwnd"]["lo2"][0] is None  # no threshold before the first loss


def test_the_queue_is_that_of_the_named_bottleneck_or_the_longest(tmp_path: Path) -> None:
    folder = make_results(tmp_path, [Case("reno", 50, 1)], duration_s=5.0)
    path = next(folder.iterdir())
    run = json.loads((path / "run.json").read_text())
    for named, highest in (({"node": "r2", "interface": "r2-eth0"}, 0), (None, 49)):
        run["environment"]["bottleneck"] = named
        (path / "run.json").write_text(json.dumps(run))
        entry = next(entry for entry in run_series(load_run(path), 100, 5.0) if entry["figure"] == "queue")
        assert max(value for value in entry.get("hi", entry["lo"]) if value is not None) >= highest
        assert (max(entry.get("hi", entry["lo"])) == 0) is (highest == 0)


def test_fairness_over_time_is_drawn_for_several_flows_only(tmp_path: Path) -> None:
    folder = make_results(tmp_path, [Case("medley", 50, 1, flows=3), Case("medley", 50, 1)], duration_s=11.0)
    html = build(folder)
    assert "jain" in [figure["name"] for figure in data_of(html)["figures"]]
    drawn = [entry for run in data_of(html)["runs"] for entry in run["series"] if entry["figure"] == "jain"]
    assert len(drawn) == 1
    values = drawn[0]["lo"]
    assert len({value for value in values if value is not None}) <= 2  # two windows of 5 s
    assert all(1 / 3 <= value <= 1 for value in values if value is not None)
    alone = build(folder, [Case("medley", 50, 1).name])
    assert "jain" not in [figure["name"] for figure in data_of(alone)["figures"]]


def test_many_flows_get_fewer_buckets_each() -> None:
    assert buckets_for(1) == MOST_BUCKETS
    assert buckets_for(10_000) == FEWEST_BUCKETS
    assert FEWEST_BUCKETS < buckets_for(100) < MOST_BUCKETS


def test_twelve_runs_stay_small(tmp_path: Path) -> None:
    folder = make_results(tmp_path, duration_s=20.0)  # long enough to fill every bucket
    assert len(build(folder).encode()) < 6_000_000


def network(pairs: int, **bottleneck: Any) -> dict[str, Any]:
    sides = [(f"s{n}", "r1") for n in range(pairs)] + [("r2", f"d{n}") for n in range(pairs)]
    nodes = [{"name": name, "kind": "router" if name[0] == "r" else "host"} for name in {n for s in sides for n in s}]
    links = [{"a": a, "b": b, "rate_bps": 1e9, "delay_s": 0.001, "buffer": None} for a, b in sides]
    return {
        "nodes": sorted(nodes, key=lambda node: str(node["name"])),
        "links": [*links, {"a": "r1", "b": "r2", **bottleneck}],
    }


def test_many_equal_hosts_are_drawn_as_one_stack() -> None:
    drawn = topology.parse(network(20, rate_bps=1e8))
    assert drawn is not None
    svg = topology.draw(drawn, [f"s{n}" for n in range(20)])
    assert svg is not None
    assert svg.count("node-label") == 4
    assert "s0 … s19" in svg


def test_a_network_too_large_for_boxes_is_drawn_as_dots() -> None:
    chain = {"nodes": [{"name": f"r{n}", "kind": "router"} for n in range(100)]}
    links = [{"a": f"r{n}", "b": f"r{n + 1}"} for n in range(99)]
    drawn = topology.parse({**chain, "links": links})
    assert drawn is not None
    assert str(topology.draw(drawn, [])).count("<circle") == 100


def test_networks_that_differ_in_their_links_only_become_one_with_all_values() -> None:
    networks = [
        topology.parse(network(1, rate_bps=rate, buffer=buffer))
        for rate, buffer in ((1e7, "50 packets"), (2e7, "250 packets"))
    ]
    link = topology.merge([one for one in networks if one is not None]).links[-1]
    assert (link.rate, link.buffer, link.rate_bps) == ("10 | 20 Mbit/s", "50 | 250 packets", 1e7)


@pytest.mark.parametrize("value", [None, [], {}, {"nodes": []}, {"nodes": 3, "links": 3}, {"nodes": [3], "links": [4]}])
def test_a_malformed_network_is_no_drawing(value: Any) -> None:
    drawn = topology.parse(value)
    assert drawn is None or not drawn.links


def test_parking_lot_hosts_stand_beside_their_router() -> None:
    routers = [f"r{n}" for n in range(1, 6)]
    nodes = [{"name": name, "kind": "router"} for name in routers] + [
        {"name": f"h{n}", "kind": "host"} for n in range(1, 6)
    ]
    links = [{"a": f"h{n}", "b": f"r{n}"} for n in range(1, 6)] + [
        {"a": f"r{n}", "b": f"r{n + 1}"} for n in range(1, 5)
    ]
    drawn = topology.parse({"nodes": nodes, "links": links})
    assert drawn is not None
    svg = topology.draw(drawn, ["h1"])
    assert svg is not None
    places = re.findall(r'<rect class="node [a-z]+" x="([-0-9.]+)" y="([-0-9.]+)"', svg)
    assert len(set(places)) == 10  # nothing on top of anything
    assert min(np.array(places, dtype=float).ravel()) >= 0


def test_settings_tell_what_is_common_and_what_differs() -> None:
    (general, kernel) = settings_of(
        [{"cpu": "x", "kernel": {"hz": 1000, "key": "a"}}, {"cpu": "x", "kernel": {"hz": 1000}}]
    )
    assert general.common == (("cpu", "x"),)
    assert kernel.common == (("hz", "1000"),)
    assert kernel.differing == (("key", ("a", "not recorded")),)


def test_the_report_appears_whole_under_its_name(quickstart: Path, tmp_path: Path) -> None:
    target = write_report(quickstart, tmp_path / "out" / "r.html")
    assert [path.name for path in target.parent.iterdir()] == ["r.html"]
    assert target.read_text().endswith("</html>")


def test_the_command_writes_the_report_and_ends_with_2_on_bad_usage(quickstart: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "analysis.report", str(quickstart)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert Path(done.stdout.strip()) == quickstart / "report.html"
    bad = subprocess.run(
        [sys.executable, "-m", "analysis.report", str(tmp_path / "none")],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert bad.returncode == 2
    assert "no such folder; run the experiment first" in bad.stderr
