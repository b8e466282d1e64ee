# SPDX-License-Identifier: Apache-2.0
"""All records of a flow joined at each ACK: the timeline, which is made when it is asked for and stored nowhere.

    ./warpbed exec python -P -m collectors.timeline RUN FILE

writes that of a run's folder as Parquet. A row per ACK that reached the sender. Beside what the wire shows stands the last that the
others said before it: the socket's variables at tcp_probe, its sample, and the sample of the bottleneck's queue, each with its age. What
is not there, or was not yet, is null.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from base import screen
from base.small_files import require_plain, small_text
from collectors import reading, records
from collectors.version import SCHEMA_VERSION
from network.model import address_plan
from plan.model import Plan, from_json

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Source:
    """A record whose last row before an ACK is wanted: its columns by the timeline's names, and the column of their age."""

    kind: str
    age: str
    columns: Mapping[str, str]


SOURCES = (
    Source("sockets", "probe_age_us",
        {name: name for name in ("cwnd_packets", "ssthresh_packets", "srtt_us", "snd_wnd_bytes")}),
    Source(
        "tcp_info", "sample_age_us",
        {name: name for name in ("ca_state", "pacing_rate_bytes_per_s", "delivery_rate_bytes_per_s", "rto_us",
            "retransmits_total")},
    ),
    Source("queues", "queue_age_us",
        {name: f"queue_{name}" for name in ("backlog_packets", "backlog_bytes", "drops", "marks")}),
)  # fmt: skip
WIRE = ("ack", "rtt_us", "sacked_bytes", "duplicate", "window_bytes", "in_flight_bytes")


@dataclass(frozen=True)
class QueuePlace:
    """Whose queue stands in the timeline."""

    node: str
    interface: str


def schema() -> pa.Schema:
    """Times; the flow by name, four-tuple and start; the wire; then each source's columns with their age."""
    types = {kind: dict(columns) for kind, columns in records.SCHEMAS.items()}
    fields = [("time_ns", pa.int64()), ("t_s", pa.float64()), ("flow", pa.string())]
    fields += [(name, types["flows"][name]) for name in ("src_addr", "src_port", "dst_addr", "dst_port", "start_s")]
    fields += [(name, types["acks"][name]) for name in WIRE]
    for source in SOURCES:
        fields += [(name, types[source.kind][column]) for column, name in source.columns.items()]
        fields.append((source.age, pa.float64()))
    return pa.schema(fields, metadata={"warpbed.schema": str(SCHEMA_VERSION)})


def place(plan: Plan) -> QueuePlace | None:
    """The queue of a run's bottleneck, where its topology names one."""
    named = plan.network.bottleneck
    if named is None:
        return None
    interfaces = address_plan(plan.network)[named.node].interfaces
    return QueuePlace(named.node, next(i.name for i in interfaces if i.peer == named.peer))


def joined(folder: Path, bottleneck: QueuePlace | None) -> pa.Table:
    """The records in `folder`, a row per ACK."""
    flows = {row["flow"]: row for row in pq.read_table(folder / "flows.parquet").to_pylist()}
    tables = {source.kind: _sorted(folder / f"{source.kind}.parquet", source.kind, bottleneck) for source in SOURCES}
    acks = reading.table(folder / "acks.parquet")
    parts = [_of_flow(acks.slice(first, count), flows[name], tables) for name, first, count in _runs(acks["flow"])]
    table = pa.concat_tables(parts) if parts else schema().empty_table()
    return table.replace_schema_metadata(schema().metadata)


def of_run(folder: Path) -> pa.Table:
    """The timeline of a run's folder: from its records, or as an older collector left it.

    Raises OSError or pa.ArrowInvalid for a record, OSError, ValueError, KeyError or TypeError for a plan that cannot be read.
    """
    for file in (folder / "records").glob("*.parquet"):
        require_plain(file)
    stored = folder / "records/timeline.parquet"
    if stored.is_file():
        return pq.read_table(stored)
    return joined(folder / "records", place(from_json(small_text(folder / "raw/plan.json"))))


def _sorted(file: Path, kind: str, bottleneck: QueuePlace | None) -> dict[str, pa.Table]:
    """A record's rows in the order of time, by flow; those of the bottleneck's queue belong to every flow ("")."""
    if not file.exists() or (kind == "queues" and bottleneck is None):
        return {}
    table = pq.read_table(file).sort_by("time_ns")
    if kind == "queues":
        assert bottleneck is not None
        here = pa.compute.and_(
            pa.compute.equal(table["node"], bottleneck.node), pa.compute.equal(table["interface"], bottleneck.interface)
        )
        return {"": table.filter(here)}
    table = table.take(pa.compute.sort_indices(table, [("flow", "ascending"), ("time_ns", "ascending")]))
    return {name: table.slice(first, count) for name, first, count in _runs(table["flow"])}


def _runs(column: pa.ChunkedArray) -> list[tuple[str, int, int]]:
    """(value, first row, rows) of each stretch of equal values."""
    values = column.to_numpy()
    if not len(values):
        return []
    first = np.concatenate(([0], np.flatnonzero(values[1:] != values[:-1]) + 1))
    counts = np.diff(np.append(first, len(values)))
    return [(str(values[i]), int(i), int(n)) for i, n in zip(first, counts, strict=True)]


def _of_flow(acks: pa.Table, flow: Mapping[str, Any], tables: Mapping[str, Mapping[str, pa.Table]]) -> pa.Table:
    fields = schema()
    count, times = len(acks), acks["time_ns"].to_numpy()
    columns: dict[str, Any] = {name: acks[name] for name in ("time_ns", "t_s", "flow", *WIRE)}
    for name in ("src_addr", "src_port", "dst_addr", "dst_port", "start_s"):
        columns[name] = pa.repeat(pa.scalar(flow[name], fields.field(name).type), count)
    for source in SOURCES:
        rows = tables[source.kind].get("" if source.kind == "queues" else flow["flow"])
        columns |= _last(source, rows, times, fields)
    return pa.Table.from_arrays([columns[name].cast(fields.field(name).type) for name in fields.names], schema=fields)


def _last(source: Source, rows: pa.Table | None, times: Integers, fields: pa.Schema) -> dict[str, pa.Array]:
    """Each time's last row not after it, and how long before it was (µs)."""
    names = [*source.columns.values(), source.age]
    if rows is None or not len(rows):
        return {name: pa.nulls(len(times), fields.field(name).type) for name in names}
    theirs = rows["time_ns"].to_numpy()
    place = np.searchsorted(theirs, times, side="right") - 1
    index = pa.array(np.maximum(place, 0), mask=place < 0)
    latest = {name: rows[column].combine_chunks().take(index) for column, name in source.columns.items()}
    latest[source.age] = pa.array((times - theirs[np.maximum(place, 0)]) / 1e3, mask=place < 0)
    return latest


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m collectors.timeline", description=__doc__.partition("\n")[0])
    parser.add_argument("run", type=Path, help="a run's folder")
    parser.add_argument("file", type=Path, help="the Parquet file to write")
    options = parser.parse_args()
    try:
        records.write_table(of_run(options.run), options.file)
    except (OSError, ValueError, KeyError, TypeError) as error:  # Arrow's are ValueErrors
        print(f"{options.run}: {error!r}; ./warpbed collect {options.run} makes its records again", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    screen.install()
    raise SystemExit(main())
