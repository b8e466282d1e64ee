# SPDX-License-Identifier: Apache-2.0
"""A browser: an HTML file over a new connection, then its objects over several, then a pause, then the next page."""

from __future__ import annotations

from typing import Any

from agent.traffic import nginx
from agent.traffic.control import Control
from agent.traffic.http import HttpConnection
from agent.traffic.loop import Loop
from plan.model import TrafficPlan
from plan.summary import spread


class Browser:
    """Loads pages one after the other."""

    def __init__(self, plan: TrafficPlan, address: tuple[str, int], loop: Loop) -> None:
        self._settings, self._address, self._loop = plan.settings, address, loop
        self._pages = list(reversed(plan.settings["pages"]))
        self._connections: list[HttpConnection] = []
        self._waiting: list[int] = []
        self._page: dict[str, Any] = {}
        self._left = 0
        self._start_s = 0.0
        self.loaded: list[dict[str, float]] = []
        self.failed: list[str] = []

    def next_page(self) -> None:
        if not self._pages:
            self._loop.stop()
            return
        self._page = self._pages.pop()
        self._start_s, self._left = self._loop.now_s(), 1 + len(self._page["object_bytes"])
        self._waiting = list(reversed(self._page["object_bytes"]))
        self._connect().get(self._page["html_bytes"], self._html)

    def _connect(self) -> HttpConnection:
        self._connections.append(HttpConnection(self._loop, self._address, self._broken))
        return self._connections[-1]

    def _html(self, _size: int) -> None:
        self._left -= 1
        first = self._connections[0]
        self._load(first)
        while self._waiting and len(self._connections) < self._settings["connections"]:
            self._load(self._connect())

    def _load(self, connection: HttpConnection) -> None:
        if self._waiting:
            connection.get(self._waiting.pop(), lambda _: self._object(connection))
        elif self._left == 0:
            self._end_page()

    def _object(self, connection: HttpConnection) -> None:
        self._left -= 1
        self._load(connection)

    def _end_page(self) -> None:
        now_s = self._loop.now_s()
        size = self._page["html_bytes"] + sum(self._page["object_bytes"])
        self.loaded.append({"start_s": self._start_s, "load_s": now_s - self._start_s, "bytes": size})
        self._close()
        self._loop.at(now_s + self._page["think_s"], self.next_page)

    def _broken(self, reason: str) -> None:
        self.failed.append(reason)
        self._close()
        self._loop.at(self._loop.now_s() + self._page["think_s"], self.next_page)

    def _close(self) -> None:
        for connection in self._connections:
            connection.close()
        self._connections = []

    def unfinished(self) -> int:
        """1 where a page was under way."""
        return int(bool(self._connections))


def browse(plan: TrafficPlan, addresses: dict[str, str], control: Control) -> dict[str, Any]:
    """The client of a web entry."""
    loop = Loop(control)
    browser = Browser(plan, (addresses[plan.settings["to"]], plan.port), loop)
    control.ready()
    if not control.wait_start():
        return {"pages": []}
    loop.at(plan.settings["start_s"], browser.next_page)
    loop.at(plan.settings["stop_s"], loop.stop)
    loop.run()
    return {
        "pages": browser.loaded,
        "pages_loaded": len(browser.loaded),
        "pages_failed": len(browser.failed),
        "pages_unfinished": browser.unfinished(),
        "errors": browser.failed[:10],
        **spread("page_load", "s", [page["load_s"] for page in browser.loaded]),
    }


PROGRAMS = {("web", "client"): browse, ("web", "server"): nginx.serve}
