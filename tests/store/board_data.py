# SPDX-License-Identifier: Apache-2.0
"""A database with something for every panel of every dashboard, and with what has broken some."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis import campaign_clock
from analysis.reproduction.outcomes import Evidence, Judged, judged
from benchmarks import store_lab
from benchmarks.make_results import Case
from schema.catalogue import Entry
from store import debian_server, outcomes
from store.connect import connected

WARNING = ({"rule": "loss", "severity": "warning", "message": "more than asked"},)
ERROR = ({"rule": "rate", "severity": "error", "message": "faster than asked"},)
LARGE_SEED = 2**53 + 1
"""The first whole number that a JavaScript number does not hold."""
CASES = (
    Case("reno", 50, 1), Case("reno", 250, 1), Case("cubic", 50, 1), Case("cubic", 50, LARGE_SEED),
    Case("cubic", 250, 1, flows=2),
    Case("medley", 250, 1, verdict="suspect", reasons=WARNING),
    Case("medley", 250, 2, verdict="invalid", reasons=ERROR),
    Case("medley", 50, 2, kind="failed"),
)  # fmt: skip
DROPPED_BEFORE = 30
"""Packets that the calibration's probe of the buffer lost: the kernel's counter stands there when the run begins."""
STRANGE = "o'Neill & {50%}, +1"
"""An experiment whose name means something to SQL, to URLs and to Grafana."""
UNCAPTURED = "uncaptured"
CAMPAIGN = "journey"
RECEIVERS = ("far", "near")
TRANSFERS = tuple(
    Case(cca, 50, number, params={"receiver": receiver, "size": "1MB", "run": run})
    for number, (receiver, cca, run) in enumerate(
        ((receiver, cca, run) for run in (1, 2) for receiver in RECEIVERS for cca in ("cubic", "reno")), start=1
    )
)
PAUSE_S = 6 * 3600.0
KEPT = 5
"""Of so many rows per ACK one is kept: panels draw points of 10 ms at the finest."""


def make(place: Path) -> None:
    """Results of four experiments."""
    quickstart = store_lab.results(place, 20.0, CASES)
    for file in quickstart.glob("*/records/queues.parquet"):
        table = pq.read_table(file)
        place_of_drops = table.column_names.index("drops")
        table = table.set_column(place_of_drops, "drops", pc.add(table["drops"], DROPPED_BEFORE))
        pq.write_table(table, file)
    store_lab.results(place, 2.0, (Case("reno", 50, 1),), experiment=STRANGE)
    uncaptured = store_lab.results(place, 2.0, (Case("cubic", 50, 1),), experiment=UNCAPTURED)
    for name in ("flows", "intervals", "acks", "sockets"):
        for file in uncaptured.glob(f"*/records/{name}.parquet"):
            pq.write_table(pq.read_table(file).slice(0, 0), file)
    journey = store_lab.results(place, 2.0, TRANSFERS, experiment=CAMPAIGN)
    for name in ("acks", "sockets"):
        for file in place.glob(f"*/*/records/{name}.parquet"):
            table = pq.read_table(file)
            pq.write_table(table.take(pa.array(range(0, table.num_rows, KEPT), pa.int64())), file)
    campaign_clock.write(journey, {case.name: PAUSE_S * (case.seed - 1) for case in TRANSFERS})


def filled(server: debian_server.Server, name: str, place: Path) -> store_lab.Database:
    """A database with all of it."""
    database = store_lab.make(server, name)
    make(place)
    store_lab.load(database, place)
    with connected("writer", database.url, autocommit=True) as connection:
        outcomes.put(
            connection, judgements(), {"ho2008-fig5.3": 1, "kato2012-s3.3": 1}, {"experiments/q.yml": "quickstart"}
        )
    return database


def judgements() -> list[Judged]:
    """Two entries of two theses: one with a number that holds and a claim that does not, one that nothing decides."""
    cost = {"virtual_s": 60, "mbit_s": 50, "runs": 1, "gbit": 3}
    figure = Entry.model_validate({
        "id": "ho2008-fig5.3", "title": "Throughput", "where": {"section": "5.2", "page": "60"}, "kind": "figure",
        "comparable": "yes",
        "published": {"numbers": {"medley_mbps": 48.1}, "claims": ["Medley is faster than Reno"]}, "cost": cost,
    })  # fmt: skip
    claim = Entry.model_validate({
        "id": "kato2012-s3.3", "title": STRANGE, "where": {}, "kind": "claim", "comparable": "yes",
        "published": {"claims": ["x"]},
        "cost": cost,
    })  # fmt: skip
    evidence = (
        Evidence("medley_mbps", "value", "holds", "experiments/q.yml", "", "48.1", "48 ± 0.2", "", 2),
        Evidence("1", "order", "contradicted", "analysis/models/ho2008.py", "", "", "1 against 2", "too slow"),
    )
    return [judged(figure, evidence), judged(claim, [])]
