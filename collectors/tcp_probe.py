# SPDX-License-Identifier: Apache-2.0
"""Decode the kernel's ring buffer pages of tcp:tcp_probe → the `sockets` records.

The layout of a page and of its events is that of the kernel's include/linux/ring_buffer.h; the event's fields come from
the format file that the agent stored beside it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from collectors.errors import CollectError
from collectors.packets import Array
from collectors.tcp import relative

PAGE_HEADER, EVENT_HEADER = 16, 4
COMMIT_MASK = 0xFFFFFFF
TYPE_PADDING, TYPE_TIME_EXTEND, TYPE_TIME_STAMP = 29, 30, 31
INFINITE = 0x7FFFFFFF
WANTED = ("saddr", "sport", "dport", "snd_nxt", "snd_una", "snd_cwnd", "ssthresh", "snd_wnd", "srtt")
_FIELD = re.compile(r"field:(.*?)(\w+)(?:\[\d+\])?;\s*offset:(\d+);\s*size:(\d+);")


def read(binary: Path, format_file: Path) -> tuple[Array, dict[str, Array]]:
    """Times (ns of the monotonic clock) and fields of every event.

    `saddr` is the IPv4 source address as a number. Raises CollectError for a file that is not whole pages.
    """
    text = format_file.read_text()
    layout = {name: (int(offset), int(size)) for _, name, offset, size in _FIELD.findall(text)}
    missing = [name for name in WANTED if name not in layout]
    if missing:
        raise CollectError(f"{format_file}: tcp_probe of this kernel has no {', '.join(missing)}")
    data_offset, data_bytes = layout["data"]
    page_bytes = data_offset + data_bytes
    raw = np.frombuffer(binary.read_bytes(), dtype=np.uint8)
    if len(raw) % page_bytes:
        raise CollectError(f"{binary}: {len(raw)} bytes are not whole pages of {page_bytes}")
    times, starts = _events(raw.reshape(-1, page_bytes))
    fields = {name: _field(raw, starts, *layout[name]) for name in WANTED if name != "saddr"}
    address = layout["saddr"][0] + 4  # struct sockaddr_in: family, port, address in network order
    value = np.zeros(len(starts), dtype=np.int64)
    for i in range(4):
        value = value << 8 | raw[starts + address + i]
    fields["saddr"] = value
    return times, fields


def _field(raw: npt.NDArray[np.uint8], starts: Array, offset: int, size: int) -> Array:
    value = np.zeros(len(starts), dtype=np.int64)
    for i in range(size):
        value |= raw[starts + offset + i].astype(np.int64) << (8 * i)
    return value


def _events(pages: npt.NDArray[np.uint8]) -> tuple[Array, Array]:
    """Time of each event, and where its fields begin in the file."""
    times: list[int] = []
    starts: list[int] = []
    words = pages.view("<u4")
    for number in range(len(pages)):
        row = words[number]
        time_ns = int(row[0]) | int(row[1]) << 32
        commit = int(row[2]) & COMMIT_MASK
        base = number * pages.shape[1]
        values = row.tolist()
        at, end = PAGE_HEADER // 4, (PAGE_HEADER + commit) // 4
        while at < end:
            header = values[at]
            kind, delta = header & 31, header >> 5
            if kind == TYPE_PADDING:
                if delta == 0:
                    break
                at += 1 + values[at + 1] // 4
                continue
            if kind == TYPE_TIME_EXTEND:
                time_ns += delta + (values[at + 1] << 27)
                at += 2
                continue
            if kind == TYPE_TIME_STAMP:
                time_ns = (time_ns & ~((1 << 59) - 1)) | (values[at + 1] << 27) + delta
                at += 2
                continue
            time_ns += delta
            length, first = (values[at + 1] // 4, at + 2) if kind == 0 else (kind, at + 1)
            times.append(time_ns)
            starts.append(base + first * 4)
            at += 1 + length
    return np.array(times, dtype=np.int64), np.array(starts, dtype=np.int64)


def rows(
    folder: Path,
    flow_of: Mapping[tuple[int, int, int], str],
    initial_seq: Mapping[str, int],
    to_realtime_ns: int,
    start_ns: int,
) -> dict[str, Any]:
    """Columns of the `sockets` records.

    flow_of: flow's name by (source address, source port, destination port); others are left out
    to_realtime_ns: what to add to the monotonic clock
    """
    times, fields = read(folder / "tcp_probe.bin", folder / "tcp_probe.format")
    flow = np.full(len(times), "", dtype=object)
    for (source, source_port, destination_port), name in flow_of.items():
        mask = (fields["saddr"] == source) & (fields["sport"] == source_port) & (fields["dport"] == destination_port)
        flow[mask] = name
    keep = flow != ""
    flow, times = flow[keep], times[keep] + to_realtime_ns
    fields = {name: column[keep] for name, column in fields.items()}
    una, nxt = np.zeros(len(times), dtype=np.int64), np.zeros(len(times), dtype=np.int64)
    for name, initial in initial_seq.items():
        mask = flow == name
        una[mask] = relative(fields["snd_una"][mask], initial) - 1
        nxt[mask] = relative(fields["snd_nxt"][mask], initial) - 1
    return {
        "time_ns": times,
        "t_s": (times - start_ns) / 1e9,
        "flow": flow,
        "cwnd_packets": fields["snd_cwnd"],
        "ssthresh_packets": np.ma.masked_array(fields["ssthresh"], fields["ssthresh"] >= INFINITE),
        "srtt_us": fields["srtt"],
        "snd_wnd_bytes": fields["snd_wnd"],
        "in_flight_bytes": nxt - una,
        "snd_nxt": nxt,
        "snd_una": una,
    }
