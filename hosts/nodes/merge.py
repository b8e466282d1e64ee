# SPDX-License-Identifier: Apache-2.0
"""Put what the machines of a cabled network recorded into one folder, on one clock: as if one host had been the network.

Each machine's times are shifted by the offset of its clock, so that records of different machines can be set side by side.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from base.errors import WarpbedError
from plan.samples import MAGIC, RECORD

PCAP_HEADER, PCAP_RECORD = 24, 16
PCAP_NANOSECONDS = b"\x4d\x3c\xb2\xa1"
SAMPLES = ("sockets.bin", "queues.bin")
BLOCK_BYTES = 1 << 20
LONGEST_PACKET_BYTES = 4 << 20
PAGE_STAMP = struct.Struct("<Q")


class MergeError(WarpbedError):
    """Files that do not fit together; the text names them."""


@dataclass(frozen=True)
class Part:
    """One machine's raw files. offset_ns: its clock minus the controller's."""

    node: str
    folder: Path
    offset_ns: int


def merge(parts: Sequence[Part], out: Path) -> dict[str, Any]:
    """Write captures, samples and trace events of all parts to `out`; returns the run's facts (guest.json of one host).

    Raises MergeError where a machine left no usable facts.
    """
    facts = {part.node: _facts(part) for part in parts}
    for part in parts:
        for capture in part.folder.glob("*.pcap"):
            _shift_capture(capture, out / capture.name, part.offset_ns)
        for file in part.folder.glob("*.json"):
            if file.name not in ("guest.json", "plan.json", "cabling.json"):
                file.rename(out / file.name)
    for name in SAMPLES:
        _join_samples([(part.folder / name, part.offset_ns) for part in parts], out / name)
    _join_traces(parts, facts, out)
    return _joined(parts, facts)


def _facts(part: Part) -> dict[str, Any]:
    try:
        facts: dict[str, Any] = json.loads((part.folder / "guest.json").read_text())
    except (OSError, ValueError) as error:
        raise MergeError(f"{part.node}: no guest.json from its machine: {error}") from error
    return facts


def _shift_capture(source: Path, target: Path, offset_ns: int) -> None:
    """Copy a capture of nanoseconds with each time earlier by offset_ns, packet by packet: it can be larger than memory."""
    record = struct.Struct("<II")
    with open(source, "rb", BLOCK_BYTES) as packets, open(target, "wb", BLOCK_BYTES) as out:
        header = packets.read(PCAP_HEADER)
        if header[:4] != PCAP_NANOSECONDS:
            raise MergeError(f"{source}: not a capture in nanoseconds of this byte order")
        out.write(header)
        while len(head := packets.read(PCAP_RECORD)) == PCAP_RECORD:
            seconds, fraction = record.unpack_from(head)
            shifted = seconds * 10**9 + fraction - offset_ns
            length = struct.unpack_from("<I", head, 8)[0]
            if length > LONGEST_PACKET_BYTES or not 0 <= shifted < 2**32 * 10**9:
                raise MergeError(f"{source}: a packet of {length} bytes at {shifted / 1e9:g} s: the capture is damaged")
            out.write(record.pack(shifted // 10**9, shifted % 10**9) + head[8:])
            out.write(packets.read(length))
        out.write(head)  # a packet that was cut in its header stays for the collector to tell


def _join_samples(files: Sequence[tuple[Path, int]], target: Path) -> None:
    """All samples in the order of their shifted times."""
    records: list[tuple[int, int, bytes]] = []
    is_any = False
    for file, offset_ns in files:
        if not file.exists():
            continue
        is_any = True
        data = file.read_bytes()
        at = len(MAGIC)
        while at + RECORD.size <= len(data):
            time_ns, node, length = RECORD.unpack_from(data, at)
            at += RECORD.size
            records.append((time_ns - offset_ns, node, data[at : at + length]))
            at += length
    if not is_any:
        return
    with open(target, "wb") as out:
        out.write(MAGIC)
        for time_ns, node, answer in sorted(records, key=lambda record: record[:2]):
            out.write(RECORD.pack(time_ns, node, len(answer)) + answer)


def _join_traces(parts: Sequence[Part], facts: Mapping[str, Mapping[str, Any]], out: Path) -> None:
    """All pages of the trace rings. Their clock is each machine's own monotonic one: it is moved to the first machine's.

    A page begins with the time of its first event; all other times in it count from there.
    """
    traced = [part for part in parts if (part.folder / "tcp_probe.bin").exists()]
    if not traced:
        return
    formats = {(part.folder / "tcp_probe.format").read_text() for part in traced}
    if len(formats) != 1:
        raise MergeError(f"{', '.join(part.node for part in traced)}: their kernels' tcp_probe events differ")
    (out / "tcp_probe.format").write_text(formats.pop())
    with open(out / "tcp_probe.bin", "wb") as joined:
        for part in traced:
            shift_ns = _monotonic_to_common(facts[part.node], part) - _monotonic_to_common(
                facts[parts[0].node], parts[0]
            )
            _copy_pages(part.folder / "tcp_probe.bin", joined, shift_ns)


def _monotonic_to_common(facts: Mapping[str, Any], part: Part) -> int:
    """What to add to a machine's monotonic time to get the controller's time of day."""
    return int(facts["start_realtime_ns"]) - int(facts["start_monotonic_ns"]) - part.offset_ns


def _copy_pages(source: Path, out: BinaryIO, shift_ns: int) -> None:
    data = np.fromfile(source, dtype=np.uint8)
    size = _page_bytes(source)
    for at in range(0, len(data), size):
        page = bytearray(data[at : at + size].tobytes())
        (stamp,) = PAGE_STAMP.unpack_from(page)
        PAGE_STAMP.pack_into(page, 0, max(stamp + shift_ns, 0))
        out.write(page)


def _page_bytes(source: Path) -> int:
    """Length of a ring buffer's page: its header says where the data begins and how long it is at most."""
    for line in (source.parent / "tcp_probe.format").read_text().splitlines():
        if "field: char data" in line:
            fields = dict(part.strip().split(":", 1) for part in line.split(";") if ":" in part)
            return int(fields["offset"]) + int(fields["size"])
    raise MergeError(f"{source}: its format does not say how large a page is")


def _joined(parts: Sequence[Part], facts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The facts of all machines as those of one host; realtime stays apart for each machine."""
    first = facts[parts[0].node]
    environments = [one["environment"] for one in facts.values()]
    nodes = {
        name: node for environment in environments for name, node in environment["nodes"].items() if name != "wires"
    }
    wires = [entry for one in facts.values() for entry in one["queue_statistics"].get("wires", [])]
    statistics = {name: rows for one in facts.values() for name, rows in one["queue_statistics"].items()}
    return {
        **first,
        "ok": all(one["ok"] for one in facts.values()),
        "environment": {**first["environment"], "nodes": nodes},
        "idle_rtt": {pair: ns for one in facts.values() for pair, ns in one["idle_rtt"].items()},
        "capture_drops": {name: count for one in facts.values() for name, count in one["capture_drops"].items()},
        "tcp_shortages": {
            name: counts for one in facts.values() for name, counts in one.get("tcp_shortages", {}).items()
        },
        "tcp_probe_lost": sum(one["tcp_probe_lost"] for one in facts.values()),
        "queue_statistics": {**statistics, "wires": wires} if wires else statistics,
        "realtime": {name: one["realtime"] for name, one in facts.items()},
        "start_realtime_ns": int(first["start_realtime_ns"]) - parts[0].offset_ns,
    }
