# SPDX-License-Identifier: Apache-2.0
"""A browser in a real Grafana (GRAFANA_URL): each dashboard and each link from the home page shows no error, whatever its store holds."""

from __future__ import annotations

import json
import os
import re
import shutil
import urllib.error
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks import store_lab
from dashboards.addresses import TITLES, uid
from store import debian_server
from tests.browser import grafana_states

playwright = pytest.importorskip("playwright.sync_api", reason="the Python package playwright is not installed")
CHROMIUM = os.environ.get("WARPBED_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
SERVER = os.environ.get("GRAFANA_URL", "").rstrip("/")
ARTIFACTS = os.environ.get("WARPBED_ARTIFACTS", "")
pytestmark = [
    pytest.mark.skipif(not SERVER, reason="no Grafana at GRAFANA_URL (http://user:password@host:port)"),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium; apt-get install chromium"),
    pytest.mark.timeout(1800),
]
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync",
)  # fmt: skip
QUERY = "/api/ds/query"
WRONG = (
    "pq: ",
    "Panel plugin not found",
    "Templating [",
    "Cannot read prop",
    "Query error",
    "Error updating options",
    "An unexpected error happened",
    "Dashboard not found",
    "Missing data",
    "Data is missing",
    "No data in response",
    "not found in data",
    "Configured x field not found",
    "No histogram found",
    "No numeric fields",
    "Unable to render data",
)
"""What Grafana writes where something failed, or where it finds nothing and does not leave the words to the panel."""
MARKS = (
    '[data-testid="data-testid Panel status error"], .panel-info-corner--error, [data-testid="data-testid Alert error"], '
    '[data-testid="data-testid Alert warning"]'
)
"""Red corners of panels and toasts, of 9.4 and of later versions."""
WATCH = """
const marks = MARKS;
window.seenMarks = [];
new MutationObserver(() => {
  for (const mark of document.querySelectorAll(marks)) {
    const text = (mark.getAttribute('data-testid') || mark.className) + ': ' + mark.innerText;
    if (!window.seenMarks.includes(text)) window.seenMarks.push(text);
  }
}).observe(document, { subtree: true, childList: true, attributes: true });
""".replace("MARKS", json.dumps(MARKS))
"""A toast is gone after a few seconds: what has been there counts."""
QUIET = 4
"""Of quarters of a second without an open query: then a page is drawn."""


class Visitor:
    """A logged-in page that remembers failed queries. Grafana keeps connections open, so that its pages never are idle."""

    def __init__(self, page: Any, address: str) -> None:
        self.page, self.address = page, address
        self.failed: list[str] = []
        self.open_queries: set[Any] = set()
        page.on("request", lambda request: self.open_queries.add(request) if QUERY in request.url else None)
        page.on("requestfinished", self._done)
        page.on("requestfailed", self._done)
        page.on("response", self._seen)
        page.on("pageerror", lambda error: self.failed.append(f"script: {error}"))

    def _done(self, request: Any) -> None:
        self.open_queries.discard(request)

    def _seen(self, response: Any) -> None:
        if QUERY in response.url and response.status >= 400:
            self.failed.append(f"{response.status}: {response.text()[:300]}")

    def open(self, path: str) -> list[str]:
        """What is wrong on a page once its queries are answered and every panel has been in view."""
        self.page.goto("about:blank")  # what another page has not finished is no fault of this one
        self.failed.clear()
        self.open_queries.clear()
        self.page.goto(self.address + path, wait_until="domcontentloaded", timeout=120_000)
        try:
            self.page.wait_for_selector(".react-grid-item", timeout=60_000)
        except playwright.TimeoutError:
            return [f"no panel: {self.page.inner_text('body')[:200]}"]
        quiet = 0
        for _ in range(120):
            self.page.wait_for_timeout(250)
            quiet = 0 if self.open_queries else quiet + 1
            if quiet >= QUIET:
                break
        text = self.page.inner_text("body")
        return [*self.failed, *(word for word in WRONG if word in text), *self.page.evaluate("window.seenMarks")]

    def links(self, prefix: str) -> list[str]:
        """The links of the dashboard's bar, as Grafana makes them from the state of its variables, and of each panel's cells the first
        of each column."""
        bar = self.page.eval_on_selector_all(
            f"a[href*='/d/{prefix}-']",
            "all => all.filter(one => !one.closest('[role=cell]')).map(one => one.getAttribute('href'))",
        )
        cells = self.page.eval_on_selector_all(
            f"[role=row]:first-of-type [role=cell] a[href*='/d/{prefix}-']",
            "all => all.map(one => one.getAttribute('href'))",
        )
        shown = [link for link in [*bar, *cells] if "search=open" not in link]
        return list(dict.fromkeys(shown))


@pytest.fixture(scope="module")
def visitor() -> Iterator[Visitor]:
    server = grafana_states.Server.of(SERVER)
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        page = browser.new_page(viewport={"width": 1600, "height": 2600})  # every panel is in view
        page.add_init_script(WATCH)
        page.goto(f"{server.address}/login", wait_until="domcontentloaded", timeout=120_000)
        page.fill("input[name=user]", server.user)
        page.fill("input[name=password]", server.password)
        page.click("button[type=submit]")
        page.wait_for_selector("input[name=password]", state="detached", timeout=60_000)
        yield Visitor(page, server.address)
        browser.close()


@pytest.fixture(scope="module", params=grafana_states.STATES)
def state(
    request: pytest.FixtureRequest, timescale: debian_server.Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The first part of the addresses of dashboards over a store of one kind."""
    database = store_lab.make(timescale, "seen_" + re.sub(r"\W", "_", request.param))
    make = grafana_states.STATES[request.param]
    if make is not None:
        place = tmp_path_factory.mktemp("results")
        make(place)
        store_lab.load(database, place)
    try:
        with grafana_states.shown(grafana_states.Server.of(SERVER), database, f"seen-{request.param}") as prefix:
            yield prefix
    except urllib.error.HTTPError as error:
        pytest.skip(f"this Grafana does not reach a database of this machine, or its user may not add one: {error}")


NARROW = 900
"""Pixels: half of a common screen."""
CHARTS = """
() => [...document.querySelectorAll('.react-grid-item')].filter(item => item.querySelector('.u-over')).map(item => {
  const whole = item.getBoundingClientRect(), data = item.querySelector('.u-over').getBoundingClientRect();
  return [item.innerText.split('\\n')[0], data.width / whole.width, data.height / whole.height];
})
"""
"""Of each chart its title, and how much of its panel the data has: across and down."""


@pytest.mark.parametrize("name", TITLES)
def test_a_dashboard_opened_by_its_address_shows_no_error(visitor: Visitor, name: str) -> None:
    assert visitor.open(f"/d/{uid(name)}") == []


@pytest.mark.root
def test_every_link_from_the_home_page_and_from_where_it_leads_shows_no_error(visitor: Visitor, state: str) -> None:
    home = f"/d/{state}-experiments"
    seen = {home: visitor.open(home)}
    first = visitor.links(state)
    reached = {link.partition("?")[0].split("/")[2].removeprefix(f"{state}-") for link in first}
    assert reached >= TITLES.keys() - {"experiments"}
    for link in first:
        seen[link] = visitor.open(link)
        for onward in visitor.links(state):
            if onward not in seen and onward not in first:
                seen[onward] = visitor.open(onward)
    assert {link: wrong for link, wrong in seen.items() if wrong} == {}
    assert len(seen) >= len(TITLES)


@pytest.mark.root
def test_in_a_narrow_window_the_data_has_most_of_each_chart(visitor: Visitor, state: str) -> None:
    """Axes, titles and legends take the rest: no more than 35 % across and 65 % down."""
    wide = visitor.page.viewport_size
    visitor.page.set_viewport_size({"width": NARROW, "height": wide["height"]})
    try:
        crowded = []
        for name in TITLES:
            assert visitor.open(f"/d/{state}-{name}") == []
            crowded += [(name, *chart) for chart in visitor.page.evaluate(CHARTS) if chart[1] < 0.65 or chart[2] < 0.35]
        assert crowded == []
    finally:
        visitor.page.set_viewport_size(wide)
