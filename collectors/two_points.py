# SPDX-License-Identifier: Apache-2.0
"""Two captures of one path with different clocks: the offset of B's clock from A's, from the packets in both.

First roughly from a handshake, which needs no clock at all; then from every packet that is found at both points.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from collectors import pcap
from collectors.clock import Estimate, estimate

HANDSHAKE_COLUMNS = [
    "flow",
    "src_addr",
    "src_port",
    "dst_addr",
    "dst_port",
    "initial_seq",
    "time_ns",
    "forward",
    "handshake",
    "responder_share",
]


def clock_between(a: Path, b: Path, flows: Sequence[pcap.Flow] = (), scratch: Path | None = None) -> Estimate | None:
    """The clock of capture B against A's; None where no handshake is in both or too few packets are.

    flows: those whose data pass A first; without any, connections count whose initiators are on A's side.
    scratch: a folder for what is needed meanwhile; default: the machine's for temporary files
    Raises CaptureError for a file that is no capture.
    """
    with tempfile.TemporaryDirectory(prefix="warpbed-clock-", dir=scratch) as place:
        rough = _rough(a, b, flows, Path(place))
        if rough is None:
            return None
        offset_ns, names = rough
        taken_off = pcap.Clock(offset_ns=offset_ns)
        pcap.compare(a, b, place, clock=taken_off, flows=flows, forward_from_a=True)
        rows = pq.read_table(Path(place) / "path.parquet", columns=["time_ns", "flow", "a_to_b", "delay_us"])
        rows = rows.filter(pc.and_(pc.is_valid(rows["delay_us"]), pc.is_in(rows["flow"], value_set=names)))
        delay_ns = np.rint(rows["delay_us"].to_numpy() * 1e3).astype(np.int64)
        return estimate(rows["time_ns"].to_numpy(), delay_ns, rows["a_to_b"].to_numpy(), taken_off)


def _rough(a: Path, b: Path, flows: Sequence[pcap.Flow], scratch: Path) -> tuple[int, pc.Array] | None:
    """The offset (ns) by the handshake with the smallest round trip, and the flows that go from A to B.

    A SYN takes as long as its SYN-ACK, as far as is known here: the offset is half of the difference.
    """
    sides = []
    for name, file in (("a", a), ("b", b)):
        pcap.analyze(file, scratch / name, threads=1, flows=flows)
        table = pq.read_table(scratch / name / "directions.parquet", columns=HANDSHAKE_COLUMNS)
        sightings: dict[tuple[object, ...], dict[str, object]] = {}
        for row in table.to_pylist():
            if row["handshake"]:
                sightings[tuple(row[column] for column in HANDSHAKE_COLUMNS[1:6])] = row
        sides.append(sightings)
    at_a, at_b = sides
    best: tuple[int, int] | None = None
    names = []
    for key, syn in at_a.items():
        answer_key = next((k for k in at_a if k[:4] == (*key[2:4], *key[:2]) and at_a[k]["flow"] == syn["flow"]), None)
        if not syn["forward"] or answer_key is None or key not in at_b or answer_key not in at_b:
            continue
        if not flows and (syn["responder_share"] or 0) <= (at_b[key]["responder_share"] or 0):  # type: ignore[operator]
            continue  # its initiator is on B's side
        there = int(at_b[key]["time_ns"]) - int(syn["time_ns"])  # type: ignore[call-overload]
        back = int(at_a[answer_key]["time_ns"]) - int(at_b[answer_key]["time_ns"])  # type: ignore[call-overload]
        names.append(str(syn["flow"]))
        if best is None or there + back < best[0]:
            best = (there + back, (there - back) // 2)
    return None if best is None else (best[1], pc.pa.array(names, pc.pa.string()))
