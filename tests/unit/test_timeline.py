# SPDX-License-Identifier: Apache-2.0
"""The timeline: at each ACK the last that the socket and the queue said before it, and never anything later."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from base.paths import ROOT
from collectors import records, timeline, wire
from collectors.timeline import QueuePlace
from tests.unit.test_collectors import START_NS, plan, raw

MS = 1_000_000
TIMELINE = (sys.executable, "-P", "-m", "collectors.timeline")


def filled(kind: str, **columns: list[Any]) -> dict[str, Any]:
    """Rows of a record of which only some columns matter."""
    count = len(columns["time_ns"])
    blank: dict[str, Any] = {"string": "", "double": 0.0, "bool": False}
    return {name: columns.get(name, [blank.get(str(form), 0)] * count) for name, form in records.SCHEMAS[kind]}


def made(folder: Path, raw_folder: Path, *, queue: bool = True, first_ms: int = 70) -> list[dict[str, Any]]:
    wire_records = wire.read(raw_folder, plan(), START_NS, [])
    for kind, columns in (
        ("flows", wire_records.flows),
        ("intervals", wire_records.intervals),
        ("acks", wire_records.acks),
    ):
        records.write(folder, kind, columns)
    at = [START_NS + ms * MS for ms in (first_ms, 81, 83)]
    cwnd = [10, 11, 12]
    records.write(folder, "sockets", filled("sockets", time_ns=at, flow=["f1"] * 3, cwnd_packets=cwnd))
    at = [START_NS + 82 * MS + 1, START_NS + 10 * MS]
    rows = filled("tcp_info", time_ns=at, flow=["f1", "f1"], pacing_rate_bytes_per_s=[2000, 1000])
    records.write(folder, "tcp_info", rows)
    if queue:
        at, here = [START_NS + 80 * MS, START_NS + 84 * MS, START_NS + 85 * MS], ["r1", "r1", "r2"]
        rows = filled(
            "queues", time_ns=at, node=here, interface=["r1-eth1", "r1-eth1", "r2-eth0"], backlog_packets=[3, 5, 9]
        )
        records.write(folder, "queues", rows)
    rows_made: list[dict[str, Any]] = timeline.joined(folder, QueuePlace("r1", "r1-eth1")).to_pylist()
    return rows_made


def test_each_ack_stands_beside_the_last_of_the_others(tmp_path: Path) -> None:
    rows = made(tmp_path / "records", raw(tmp_path))[-6:]
    assert [round((row["time_ns"] - START_NS) / MS) for row in rows] == [80, 81, 82, 83, 84, 85]
    assert [row["cwnd_packets"] for row in rows] == [10, 11, 11, 12, 12, 12]
    assert [row["probe_age_us"] for row in rows] == [10_000, 0, 1000, 0, 1000, 2000]
    assert [row["pacing_rate_bytes_per_s"] for row in rows] == [1000] * 3 + [2000] * 3
    assert [row["queue_backlog_packets"] for row in rows] == [3, 3, 3, 3, 5, 5], "of the bottleneck only"
    assert [row["ack"] for row in rows] == [1000 * (i + 1) for i in range(6)]
    first = rows[0]
    assert (first["flow"], first["src_addr"], first["src_port"], first["dst_port"]) == ("f1", "192.0.2.1", 40000, 5201)
    assert first["start_s"] == 0.03


def test_what_was_not_recorded_or_not_yet_is_null(tmp_path: Path) -> None:
    rows = made(tmp_path / "records", raw(tmp_path), queue=False, first_ms=81)
    assert {row["queue_backlog_packets"] for row in rows} == {None} == {row["queue_age_us"] for row in rows}
    first, second = rows[-6:-4]
    assert first["cwnd_packets"] is None and first["probe_age_us"] is None
    assert second["cwnd_packets"] == 11 and second["probe_age_us"] == 0


def test_equal_records_give_equal_bytes(tmp_path: Path) -> None:
    captured = raw(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name / "raw").mkdir(parents=True)
        made(tmp_path / name / "records", captured)
        (tmp_path / name / "raw/plan.json").write_text(plan().to_json())
        call = [*TIMELINE, str(tmp_path / name), str(tmp_path / f"{name}.parquet")]
        subprocess.run(call, cwd=ROOT, check=True)
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    table = pq.read_table(tmp_path / "a.parquet")
    assert table.schema.equals(timeline.schema(), check_metadata=True)
    assert table.equals(timeline.of_run(tmp_path / "a"))


def test_a_timeline_that_an_older_collector_left_is_taken_as_it_is(tmp_path: Path) -> None:
    made(tmp_path / "records", raw(tmp_path))
    left = timeline.joined(tmp_path / "records", None).slice(0, 2)
    pq.write_table(left, tmp_path / "records/timeline.parquet")
    assert timeline.of_run(tmp_path).equals(left)


def test_what_cannot_be_joined_is_told_with_the_remedy(tmp_path: Path) -> None:
    call = [*TIMELINE, str(tmp_path), str(tmp_path / "t.parquet")]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2 and f"./warpbed collect {tmp_path}" in done.stderr
    assert "Traceback" not in done.stderr
