# SPDX-License-Identifier: Apache-2.0
"""A browser in a real Grafana (GRAFANA_URL): each dashboard and each link from the home page shows no error, whatever its store holds."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from dashboards.addresses import TITLES, uid

playwright = pytest.importorskip("playwright.sync_api", reason="the Python package playwright is not installed")
CHROMIUM = os.environ.get("WARPBED_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
SERVER = os.environ.get("GRAFANA_URL", "").rstrip("/")
pytestmark = [
    pytest.mark.skipif(not SERVER, reason="no Grafana at GRAFANA_URL (http://user:password@host:port)"),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium; apt-get install chromium"),
    pytest.mark.timeout(900),
]
QUERY = "/api/ds/query"
WRONG = (
    "pq: ",
    "Panel plugin not found",
    "Templating [",
    "Cannot read prop",
    "Query error",
    "Error updating options",
    "Missing data",
)
"""What Grafana writes where something failed."""
MARKS = (
    '[data-testid="data-testid Panel status error"], .panel-info-corner--error, [data-testid="data-testid Alert error"]'
)
"""Red corners of panels and toasts, of 9.4 and of later versions."""


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
        self.page.wait_for_selector(".react-grid-item", timeout=120_000)
        quiet = 0
        for _ in range(120):
            self.page.wait_for_timeout(250)
            quiet = 0 if self.open_queries else quiet + 1
            if quiet >= 6:
                break
        text = self.page.inner_text("body")
        corners = self.page.locator(MARKS).count()
        return [*self.failed, *(word for word in WRONG if word in text), *([f"{corners} red marks"] if corners else [])]

    def links(self) -> list[str]:
        """The links of the dashboard's bar, as Grafana makes them from the state of its variables, and the first of its tables."""
        found = self.page.eval_on_selector_all(
            "a[href*='/d/warpbed-']", "all => all.map(one => one.getAttribute('href'))"
        )
        bar = [link for link in found if "var-run=" not in link or "${" in link]
        cells = [link for link in found if link not in bar]
        return list(dict.fromkeys([*bar, *cells[:1]]))


@pytest.fixture(scope="module")
def visitor() -> Iterator[Visitor]:
    scheme, _, rest = SERVER.partition("://")
    credentials, _, host = rest.rpartition("@")
    user, _, password = credentials.partition(":")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1600, "height": 2600})  # every panel is in view
        page.goto(f"{scheme}://{host}/login", wait_until="domcontentloaded", timeout=120_000)
        page.fill("input[name=user]", user)
        page.fill("input[name=password]", password)
        page.click("button[type=submit]")
        page.wait_for_selector("input[name=password]", state="detached", timeout=60_000)
        yield Visitor(page, f"{scheme}://{host}")
        browser.close()


@pytest.mark.parametrize("name", TITLES)
def test_a_dashboard_opened_by_its_address_shows_no_error(visitor: Visitor, name: str) -> None:
    assert visitor.open(f"/d/{uid(name)}") == []


def test_every_link_from_the_home_page_and_from_where_it_leads_shows_no_error(visitor: Visitor) -> None:
    assert visitor.open("/") == []
    first = visitor.links()
    assert {link.partition("?")[0].split("/")[2] for link in first} >= {
        uid(name) for name in TITLES if name != "experiments"
    }
    seen: dict[str, list[str]] = {}
    for link in first:
        seen[link] = visitor.open(link)
        if seen[link]:
            break
        for onward in visitor.links():
            if onward not in seen:
                seen[onward] = visitor.open(onward)
    assert {link: wrong for link, wrong in seen.items() if wrong} == {}
    assert len(seen) >= len(TITLES)
