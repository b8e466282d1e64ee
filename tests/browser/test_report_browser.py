# SPDX-License-Identifier: Apache-2.0
"""The report in a real browser, opened from disk as a reader would. Skipped where there is no Chromium."""

from __future__ import annotations

import json
import os
import re
import shutil
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from analysis.report import Written, write_report
from benchmarks.make_results import Case, make_results

playwright = pytest.importorskip("playwright.sync_api", reason="the Python package playwright is not installed")
CHROMIUM = os.environ.get("WARPBED_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium; apt-get install chromium")

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
FIGURES = ("throughput", "goodput", "cwnd", "rtt", "queue", "rtt-cdf", "sweep")
HOSTILE = "<img src=x onerror=\"document.title='owned'\"></script><script>document.title='owned'</script>"


APPLICATIONS = [
    {"flow": "web", "app": "web", "src": "d1", "dst": "s1", "cca": "reno", "pages_loaded": 12, "page_load_p95_s": 1.25},
    {"flow": "probe", "app": "packet_pairs", "src": "s1", "dst": "d1", "cca": None, "sent_pairs": 40, "gaps": [
        {"input_gap_s": gap, "output_gap_s": max(gap, 0.002), "output_gap_min_s": gap, "output_gap_max_s": 0.004,
            "pairs": 20}
        for gap in (0.001, 0.003)]},
]  # fmt: skip


@dataclass
class Opened:
    """A page with what went wrong on it."""

    page: Any
    problems: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        instance = started.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield instance
        instance.close()


@pytest.fixture
def opened(browser: Any) -> Iterator[Any]:
    """Open a report at a width and in a colour scheme."""
    pages = []

    def start(report: Path, width: int = 1280, scheme: str = "light") -> Opened:
        page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        state = Opened(page)
        page.on("console", lambda message: state.problems.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: state.problems.append(str(error)))
        page.on("request", lambda request: state.requests.append(request.url))
        page.goto(report.as_uri())
        pages.append(page)
        return state

    yield start
    for page in pages:
        page.close()


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(make_results(tmp_path_factory.mktemp("results"), duration_s=10.0))


@pytest.fixture(scope="module")
def many_flows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cases = [Case("medley", 250, seed, flows=count, params={"n": count}) for count in (2, 12) for seed in (1, 2)]
    return write_report(make_results(tmp_path_factory.mktemp("results"), cases, experiment="flows", duration_s=6.0))


@pytest.fixture(scope="module")
def with_paper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two algorithms on one path, with published values of which one agrees, one does not and one is lost."""
    cases = [Case("reno", 50, seed, flows=4) for seed in (1, 2)]
    folder = make_results(tmp_path_factory.mktemp("results"), cases, experiment="shares", duration_s=6.0)
    for file in folder.glob("*/run.json"):
        run = json.loads(file.read_text())
        for row in run["metrics"]["flows"][:2]:
            row["cca"] = "medley"
        run["metrics"]["applications"] = APPLICATIONS
        file.write_text(json.dumps(run))
    values = [{"value": 0.9}, {"value": 0.1}, {"value": None}]
    claim = {"source": "Ho 2008 Table 5.1", "metric": "utilization", "tolerance": "15%", "values": values}
    return write_report(folder, asked=Written("experiments/shares.yml", {"published": [claim]}))


@pytest.fixture(scope="module")
def without_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    cases = [Case("reno", 50, 1, kind="failed"), Case("reno", 50, 2, kind="cut-off")]
    return write_report(make_results(tmp_path_factory.mktemp("results"), cases, duration_s=2.0))


def keep_screenshot(page: Any, name: str) -> None:
    """Leave a picture of the whole page where CI collects its artefacts."""
    if folder := os.environ.get("WARPBED_ARTIFACTS"):
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
@pytest.mark.parametrize("name", ["quickstart", "many_flows", "with_paper", "without_runs"])
def test_it_opens_without_errors_and_fits_the_width(
    opened: Any, request: pytest.FixtureRequest, name: str, width: int, scheme: str
) -> None:
    shown = opened(request.getfixturevalue(name), width, scheme)
    assert shown.problems == []
    assert [url for url in shown.requests if not url.startswith("file:")] == []
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= width
    keep_screenshot(shown.page, f"report-{name}-{width}-{scheme}")
    dark = "rgb(18, 22, 27)"
    assert (shown.page.evaluate("getComputedStyle(document.body).backgroundColor") == dark) is (scheme == "dark")


def test_every_figure_has_lines_axes_units_and_a_legend(opened: Any, quickstart: Path) -> None:
    page = opened(quickstart).page
    for name in FIGURES:
        figure = page.locator(f"#fig-{name}")
        assert figure.locator(".panel svg").count() >= 2, name
        assert figure.locator(".legend li").count() >= 3, name
        assert figure.locator("svg g path, svg g circle").count() >= 6, name
    labels = page.locator("#fig-cwnd .panel svg").first.text_content()
    assert "Congestion window, packets" in labels
    assert "Time, s" in labels
    assert page.locator("svg.topology").count() == 1
    for path in page.locator("#fig-cwnd .panel svg g path").all():
        assert "NaN" not in (path.get_attribute("d") or "")


def test_algorithms_that_share_a_path_have_bars_and_the_paper_has_a_table(opened: Any, with_paper: Path) -> None:
    page = opened(with_paper).page
    assert page.locator("#fig-shares .panel svg rect[height]").count() >= 2
    assert page.locator("#fig-shares .legend li").all_text_contents() == ["medley", "reno"]
    assert page.locator("#fig-gaps .panel svg").count() == 1
    table_rows = page.get_by_role("region", name="Results of the applications").locator("tbody tr")
    assert table_rows.count() == 4
    assert "page_load_p95_s 1.250" in table_rows.first.text_content()
    assert page.locator("#fig-goodput-cdf").count() == 0  # two flows of each are no distribution
    rows = page.get_by_role("region", name="Published and measured values").locator("tbody tr")
    assert rows.count() == 3
    assert [row.locator(".badge").text_content() for row in rows.all()] == ["agrees", "disagrees", "not comparable"]


def test_runs_can_be_chosen_coloured_and_split(opened: Any, quickstart: Path) -> None:
    shown = opened(quickstart)
    page = shown.page
    lines = page.locator("#fig-throughput .panel svg g path[fill=none]")
    before = lines.count()
    page.locator("#time-controls").get_by_label("2", exact=True).check()
    assert lines.count() == 2 * before
    page.locator("#time-controls").get_by_label("Panels by").select_option("")
    assert page.locator("#fig-throughput .panel").count() == 1
    page.locator("#time-controls").get_by_label("Colour by").select_option("buffer")
    assert page.locator("#fig-throughput .legend li").all_text_contents() == ["50p", "250p"]
    for box in page.locator("#time-controls input[type=checkbox]").all():
        box.uncheck()
    assert "No data of this kind" in page.locator("#fig-throughput").text_content()
    assert shown.problems == []


def test_metrics_can_be_drawn_against_either_parameter(opened: Any, quickstart: Path) -> None:
    shown = opened(quickstart)
    controls = shown.page.locator("#sweep-controls")
    controls.get_by_label("Against").select_option("cca")
    assert "medley" in shown.page.locator("#fig-sweep .panel svg").first.text_content()
    panels = shown.page.locator("#fig-sweep .panel")
    before = panels.count()
    controls.get_by_role("button", name="All metrics").click()
    assert panels.count() > before
    assert shown.problems == []


def test_the_keyboard_reaches_a_figure_moves_the_cursor_and_zooms(opened: Any, quickstart: Path) -> None:
    shown = opened(quickstart)
    page = shown.page
    for _ in range(200):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.className") == "panel":
            break
    assert page.evaluate("document.activeElement.className") == "panel"
    readout = page.locator(".panel:focus .readout")
    assert readout.is_visible()
    before = readout.text_content()
    page.keyboard.press("Shift+ArrowRight")
    assert readout.text_content() != before
    page.keyboard.press("+")
    assert page.get_by_label("From, s").input_value() != "0"
    assert page.evaluate("document.activeElement.className") == "panel"
    page.keyboard.press("Escape")
    assert page.get_by_label("From, s").input_value() == "0"
    assert shown.problems == []


def test_dragging_zooms_all_figures_to_the_same_time(opened: Any, quickstart: Path) -> None:
    page = opened(quickstart).page
    panel = page.locator("#fig-cwnd .panel").first
    panel.scroll_into_view_if_needed()
    box = panel.bounding_box()
    page.mouse.move(box["x"] + 150, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 300, box["y"] + 110, steps=3)
    page.mouse.up()
    first, last = (float(page.get_by_label(name).input_value()) for name in ("From, s", "To, s"))
    assert 0 < first < last < 10
    page.get_by_role("button", name="Whole run").click()
    assert page.get_by_label("To, s").input_value() == "10"


@pytest.mark.parametrize(("kind", "start"), [("SVG", b"<svg xmlns="), ("PNG", b"\x89PNG")])
def test_a_figure_can_be_saved(opened: Any, quickstart: Path, tmp_path: Path, kind: str, start: bytes) -> None:
    shown = opened(quickstart)
    with shown.page.expect_download() as download:
        shown.page.get_by_role("button", name=f"Save Queue at the bottleneck as {kind}").click()
    target = tmp_path / "figure"
    download.value.save_as(target)
    assert download.value.suggested_filename == f"fig-queue.{kind.lower()}"
    assert target.read_bytes().startswith(start)
    assert shown.problems == []


def test_the_theme_can_be_chosen(opened: Any, quickstart: Path) -> None:
    page = opened(quickstart).page
    button = page.get_by_role("button", name=re.compile("Theme"))
    button.click()
    button.click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 22, 27)"
    assert (
        page.locator("#fig-cwnd .panel svg text").first.evaluate("e => getComputedStyle(e).fill")
        == "rgb(163, 173, 184)"
    )


def test_it_prints_in_light_colours_without_controls(opened: Any, quickstart: Path) -> None:
    shown = opened(quickstart, 1280, "dark")
    shown.page.emulate_media(media="print", color_scheme="dark")
    shown.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert shown.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not shown.page.locator("#time-controls").is_visible()
    assert len(shown.page.pdf(format="A4")) > 50_000
    assert shown.problems == []


def test_hostile_names_do_nothing(opened: Any, tmp_path: Path) -> None:
    cases = [Case("reno", 50, 1, params={HOSTILE: value}) for value in (HOSTILE,)]
    cases.append(Case("cubic", 50, 1, params={HOSTILE: "__proto__"}))
    folder = make_results(tmp_path, cases, duration_s=3.0, spec={"title": HOSTILE, "question": HOSTILE})
    shown = opened(write_report(folder))
    assert shown.problems == []
    assert HOSTILE in shown.page.locator("h1").text_content()
    assert shown.page.locator("img").count() == 0
    assert not shown.page.title().startswith("owned")


@pytest.mark.parametrize(
    ("name", "scheme"),
    [("quickstart", "light"), ("quickstart", "dark"), ("with_paper", "light"), ("without_runs", "light")],
)
def test_axe_finds_nothing_serious(opened: Any, request: pytest.FixtureRequest, name: str, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    page = opened(request.getfixturevalue(name), 1280, scheme).page
    violations = axe.Axe().run(page).response["violations"]
    serious = [
        f"{row['id']}: {[node['target'] for node in row['nodes']][:5]}"
        for row in violations
        if row["impact"] in ("serious", "critical", "moderate")
    ]
    assert serious == []


def test_a_report_that_a_grafana_serves_leads_back_to_its_dashboards(browser: Any, tmp_path: Path) -> None:
    """Each complete run to its own, over its whole length; a failed one to none."""
    cases = (Case("reno", 50, 1), Case("reno", 50, 2, kind="failed"))
    folder = make_results(tmp_path, cases, experiment="o'Neill & 50%", duration_s=3.0)
    text = write_report(folder).read_text()
    page = browser.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.route("**/*", lambda route: route.fulfill(body=text, content_type="text/html; charset=utf-8"))
    page.goto(
        "http://grafana.example/under/public/warpbed/o%27Neill%20%26%2050%25/report.html#run-reno-50p-s1-00000001"
    )
    runs = [
        urllib.parse.urlsplit(link)
        for link in page.eval_on_selector_all("td a", "all => all.map(one => one.href)")
        if "/d/" in link
    ]
    assert [(link.netloc, link.path) for link in runs] == [("grafana.example", "/under/d/warpbed-run")]
    assert dict(urllib.parse.parse_qsl(runs[0].query, strict_parsing=True)) == {
        "var-experiment": "o'Neill & 50%", "var-run": "reno-50p-s1-00000001", "from": "946684800000",
        "to": "946684803000",
    }  # fmt: skip
    back = urllib.parse.urlsplit(page.get_attribute("nav a:has-text('Dashboards')", "href"))
    assert (
        dict(urllib.parse.parse_qsl(back.query)) == {"var-experiments": "o'Neill & 50%"}
        and back.path == "/under/d/warpbed-experiments"
    )
    assert problems == []
    page.close()


def test_a_report_from_disk_has_no_links_to_dashboards(opened: Any, quickstart: Path) -> None:
    from_disk = opened(quickstart)
    assert from_disk.page.locator("a[href*='/d/']").count() == 0
