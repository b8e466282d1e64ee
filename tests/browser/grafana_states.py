# SPDX-License-Identifier: Apache-2.0
"""Stores of each kind, and each of them in a Grafana: a data source and dashboards of its own, which are taken away again."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from analysis import campaign_clock
from benchmarks import grafana, store_lab
from benchmarks.make_results import Case
from dashboards.parts import SOURCE
from tests.store import board_data

DURATION_S = 3.0


def one_run(place: Path) -> None:
    store_lab.results(place, DURATION_S, (Case("reno", 50, 1),))


def quickstart(place: Path) -> None:
    store_lab.results(
        place,
        DURATION_S,
        tuple(Case(cca, size, seed) for cca in ("reno", "cubic", "medley") for size in (50, 250) for seed in (1, 2)),
    )


def sweep(place: Path) -> None:
    """Numbers, words and a value that means something to SQL; a cell without a valid run."""
    cases = []
    for number, (cca, rtt, queue) in enumerate(
        (cca, rtt, queue) for cca in ("reno", "vegas") for rtt in ("20ms", "100ms") for queue in ("pfifo", "it's fq")
    ):
        for seed in (1, 2):
            verdict = "invalid" if (cca, rtt, queue) == ("vegas", "100ms", "pfifo") else "valid"
            cases.append(
                Case(cca, 50, 10 * number + seed, verdict=verdict,
                    reasons=board_data.ERROR if verdict == "invalid" else (),
                     params={"rtt": rtt, "queue": queue})
            )  # fmt: skip
    store_lab.results(place, DURATION_S, tuple(cases), experiment="delays")


def campaign(place: Path) -> None:
    folder = store_lab.results(place, DURATION_S, board_data.TRANSFERS, experiment=board_data.CAMPAIGN)
    campaign_clock.write(folder, {case.name: board_data.PAUSE_S * (case.seed - 1) for case in board_data.TRANSFERS})


def uncaptured(place: Path) -> None:
    folders = store_lab.results(place, DURATION_S, (Case("cubic", 50, 1), Case("reno", 50, 1)), experiment="uncaptured")
    for name in ("flows", "intervals", "acks", "sockets"):
        for file in folders.glob(f"*/records/{name}.parquet"):
            pq.write_table(pq.read_table(file).slice(0, 0), file)


def failed(place: Path) -> None:
    """Nothing that counts: runs without a result, and an invalid one."""
    cases = (Case("reno", 50, 1, kind="failed"), Case("cubic", 50, 2, kind="failed"),
             Case("medley", 50, 3, verdict="invalid", reasons=board_data.ERROR))  # fmt: skip
    store_lab.results(place, DURATION_S, cases)
    store_lab.results(place, DURATION_S, (Case("reno", 50, 1, kind="failed"),), experiment="nothing came of it")


def many(place: Path) -> None:
    """Two hundred runs of five algorithms."""
    cases = tuple(
        Case(cca, size, seed)
        for cca in ("reno", "cubic", "medley", "vegas", "bbr")
        for size in (50, 100, 150, 250)
        for seed in range(1, 11)
    )
    store_lab.results(place, DURATION_S, cases, experiment="many")


STATES: Mapping[str, Callable[[Path], None] | None] = {
    "empty": None, "one-run": one_run, "quickstart": quickstart, "sweep": sweep, "campaign": campaign,
    "uncaptured": uncaptured,
    "failed": failed, "two-hundred": many,
}  # fmt: skip


@dataclass(frozen=True)
class Server:
    """A Grafana whose user may add data sources."""

    address: str
    user: str
    password: str

    @classmethod
    def of(cls, url: str) -> Server:
        """From http://user:password@host:port"""
        scheme, _, rest = url.rstrip("/").partition("://")
        credentials, _, host = rest.rpartition("@")
        user, _, password = credentials.partition(":")
        return cls(f"{scheme}://{host}", user, password)

    def call(self, method: str, path: str, body: object = None) -> Any:
        request = urllib.request.Request(  # noqa: S310 (the address is that of the tests' own GRAFANA_URL)
            self.address + path, data=None if body is None else json.dumps(body).encode(), method=method
        )
        request.add_header("Content-Type", "application/json")
        known = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        request.add_header("Authorization", f"Basic {known}")
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            text = answer.read()
        return json.loads(text) if text else None


@contextmanager
def shown(server: Server, database: store_lab.Database, name: str) -> Iterator[str]:
    """The dashboards over a database, as `name`-run and so on, in a folder of their own. Raises OSError where Grafana cannot reach it."""
    source, folder = f"{name}-store", f"{name}-folder"
    _remove(server, source, folder)
    try:
        server.call("POST", "/api/datasources", {
            "name": source, "uid": source, "type": SOURCE["type"], "access": "proxy",
            "url": str(database.server.folder),
            "user": "warpbed_reader", "database": database.name,
            "jsonData": {"database": database.name, "sslmode": "disable", "postgresVersion": 1500, "timescaledb": True,
                         "timeInterval": "10ms"},
            "secureJsonData": {"password": "of-warpbed_reader"},
        })  # fmt: skip
        server.call("POST", "/api/folders", {"uid": folder, "title": folder})
        query = {"refId": "A", "datasource": {"uid": source}, "rawSql": "SELECT 1", "format": "table"}
        server.call("POST", "/api/ds/query", {"queries": [query], "from": "0", "to": "1"})
        for path in grafana.BOARDS:
            text = (
                path.read_text().replace("/d/warpbed-", f"/d/{name}-").replace('"uid": "warpbed-', f'"uid": "{name}-')
            )
            content = json.loads(text.replace(f'"uid": "{SOURCE["uid"]}"', f'"uid": "{source}"'))
            server.call("POST", "/api/dashboards/db", {"dashboard": content, "folderUid": folder, "overwrite": True})
        yield name
    finally:
        _remove(server, source, folder)


def _remove(server: Server, source: str, folder: str) -> None:
    for path in (f"/api/folders/{folder}", f"/api/datasources/uid/{source}"):
        try:
            server.call("DELETE", path)
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
