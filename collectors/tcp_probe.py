# SPDX-License-Identifier: Apache-2.0
"""Decode the kernel's ring buffer pages of tcp:tcp_probe → the `sockets` records.

The layout of a page and of its events is that of the kernel's include/linux/ring_buffer.h; the event's fields come from
the format file that the agent stored beside it.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from base.small_files import SAMPLES_BYTES, read_small
from collectors.errors import CollectError, Damage

Array = npt.NDArray[np.int64]

PAGE_HEADER, EVENT_HEADER = 16, 4
COMMIT_MASK = 0xFFFFFFF
TYPE_PADDING, TYPE_TIME_EXTEND, TYPE_TIME_STAMP = 29, 30, 31
INFINITE = 0x7FFFFFFF
SOCKADDR_IN6_BYTES = 28
WANTED = ("saddr", "sport", "dport", "snd_nxt", "snd_una", "snd_cwnd", "ssthresh", "snd_wnd", "srtt")
INTEGERS = tuple(name for name in WANTED if name != "saddr")
_FIELD = re.compile(r"field:(.*?)(\w+)(?:\[\d+\])?;\s*offset:(\d+);\s*size:(\d+);")


def read(binary: Path, format_file: Path, damage: list[Damage]) -> tuple[Array, dict[str, Array]]:
    """Times (ns of the monotonic clock) and fields of every event.

    The source address as a number is `saddr_high` * 2^64 + `saddr`, each as if it had a sign. Pages that are cut or hold nonsense go
    to `damage`, their events up to there are used. Raises CollectError where a file is missing or the kernel's event lacks a field.
    """
    try:
        text, content = read_small(format_file).decode(errors="replace"), read_small(binary, SAMPLES_BYTES)
    except OSError as error:
        raise CollectError(f"{error.filename}: {error.strerror}") from error
    layout = {name: (int(offset), int(size)) for _, name, offset, size in _FIELD.findall(text)}
    missing = [name for name in (*WANTED, "data") if name not in layout]
    if missing:
        raise CollectError(f"{format_file}: tcp_probe of this kernel has no {', '.join(missing)}")
    page_bytes = sum(layout["data"])
    if page_bytes % 4 or page_bytes <= PAGE_HEADER or any(layout[name][1] > 8 for name in INTEGERS):
        raise CollectError(f"{format_file}: pages of {page_bytes} bytes, or fields, that cannot come from a kernel")
    whole = len(content) // page_bytes * page_bytes
    if whole != len(content):
        damage.append(Damage(binary.name, whole, f"the last page is cut: {len(content) - whole} of {page_bytes} bytes"))
    raw = np.frombuffer(content, dtype=np.uint8)[:whole]
    need = max(offset + size for offset, size in (layout[name] for name in WANTED))
    times, starts = _events(raw.reshape(-1, page_bytes), need, binary.name, damage)
    fields = {name: _field(raw, starts, *layout[name]) for name in INTEGERS}
    fields["saddr_high"], fields["saddr"] = _addresses(raw, starts, *layout["saddr"])
    return times, fields


def _field(raw: npt.NDArray[np.uint8], starts: Array, offset: int, size: int) -> Array:
    value = np.zeros(len(starts), dtype=np.int64)
    for i in range(size):
        value |= raw[starts + offset + i].astype(np.int64) << (8 * i)
    return value


def _addresses(raw: npt.NDArray[np.uint8], starts: Array, offset: int, size: int) -> tuple[Array, Array]:
    """Upper and lower 64 bits of addresses. struct sockaddr_in: family, port, address in network order; sockaddr_in6 has its flow
    label before the address."""
    high, low = np.zeros(len(starts), dtype=np.int64), np.zeros(len(starts), dtype=np.int64)
    is_v6 = _field(raw, starts, offset, 2) == socket.AF_INET6
    v4, v6 = starts[~is_v6], starts[is_v6]
    low[~is_v6] = _big(raw, v4 + offset + 4, 4)
    if size >= SOCKADDR_IN6_BYTES:
        high[is_v6], low[is_v6] = _big(raw, v6 + offset + 8, 8), _big(raw, v6 + offset + 16, 8)
    return high, low


def _big(raw: npt.NDArray[np.uint8], places: Array, size: int) -> Array:
    """Numbers in network order; of eight bytes as if they had a sign."""
    value = np.zeros(len(places), dtype=np.int64)
    for i in range(size):
        value = value << 8 | raw[places + i]
    return value


def _signed(number: int) -> int:
    """64 bits as a number with a sign."""
    return number - (1 << 64) if number >= 1 << 63 else number


def _events(pages: npt.NDArray[np.uint8], need: int, name: str, damage: list[Damage]) -> tuple[Array, Array]:
    """Time of each event, and where its fields, `need` bytes, begin in the file."""
    times: list[int] = []
    starts: list[int] = []
    words = pages.view("<u4")
    is_even, even_times, even_starts = _even_pages(words, need)
    for number in np.flatnonzero(~is_even):
        base = int(number) * pages.shape[1]
        if broken := _page(words[number].tolist(), base, need, times, starts):
            at, reason = broken
            damage.append(Damage(name, base + 4 * at, reason))
    all_times = np.concatenate([even_times, np.array(times, dtype=np.int64)])
    all_starts = np.concatenate([even_starts, np.array(starts, dtype=np.int64)])
    order = np.argsort(all_starts, kind="stable")
    return all_times[order], all_starts[order]


def _even_pages(words: npt.NDArray[np.uint32], need: int) -> tuple[npt.NDArray[np.bool_], Array, Array]:
    """Which pages hold nothing but events like the file's first one, and these pages' events: nearly all of them do.

    What is left is read event by event; here are the same times and places, of all pages at once.
    """
    at = PAGE_HEADER // 4
    none = np.zeros(len(words), dtype=bool), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    if not len(words) or words.shape[1] < at + 2:
        return none
    kind, length = int(words[0, at]) & 31, int(words[0, at + 1])
    # the first word of a long event counts itself
    step, first = (1 + length // 4, 2) if kind == 0 else (1 + kind, 1)
    if kind >= TYPE_PADDING or (step - first) * 4 < need or step > words.shape[1] - at:
        return none
    headers = words[:, at : at + (words.shape[1] - at) // step * step].reshape(len(words), -1, step)
    used = (PAGE_HEADER + (words[:, 2] & COMMIT_MASK).astype(np.int64)) // 4 - at
    is_there = np.arange(headers.shape[1]) < (used // step)[:, None]
    is_like = (headers[:, :, 0] & 31 == kind) & ((headers[:, :, 1] == length) | (kind != 0))
    is_even = (used % step == 0) & (used // step <= headers.shape[1]) & (words[:, 1] < 1 << 30)
    is_even &= (is_like | ~is_there).all(axis=1)
    is_there &= is_even[:, None]
    begin = words[:, 0].astype(np.int64) | words[:, 1].astype(np.int64) << 32
    times = begin[:, None] + np.cumsum((headers[:, :, 0] >> 5).astype(np.int64), axis=1)
    places = np.arange(len(words))[:, None] * words.shape[1] + at + first + step * np.arange(headers.shape[1])
    return is_even, times[is_there], 4 * places[is_there]


def _page(values: list[int], base: int, need: int, times: list[int], starts: list[int]) -> tuple[int, str] | None:
    """Append a page's events; the word and the reason where it stops making sense."""
    time_ns = values[0] | values[1] << 32
    at, end = PAGE_HEADER // 4, (PAGE_HEADER + (values[2] & COMMIT_MASK)) // 4
    if end > len(values) or time_ns >= 1 << 63:
        return 0, f"a page header that holds {values[2] & COMMIT_MASK} bytes from {time_ns} ns on"
    while at < end:
        header = values[at]
        kind, delta = header & 31, header >> 5
        if kind == TYPE_PADDING and delta == 0:
            return None
        if kind in (0, TYPE_PADDING, TYPE_TIME_EXTEND, TYPE_TIME_STAMP) and at + 1 >= end:
            return at, f"an event of type {kind} is cut by the end of its page"
        if kind == TYPE_PADDING:
            at += 1 + values[at + 1] // 4
        elif kind == TYPE_TIME_EXTEND:
            time_ns += delta + (values[at + 1] << 27)
            at += 2
        elif kind == TYPE_TIME_STAMP:
            time_ns = (time_ns & ~((1 << 59) - 1)) | (values[at + 1] << 27) + delta
            at += 2
        else:
            time_ns += delta
            # the first word of a long event counts itself
            words, first = (values[at + 1] // 4, at + 2) if kind == 0 else (kind, at + 1)
            if time_ns >= 1 << 63 or first * 4 + need > end * 4:
                return (
                    at,
                    f"an event of {4 * words} bytes at {time_ns} ns, {need} bytes needed, {4 * (end - first)} left",
                )
            times.append(time_ns)
            starts.append(base + first * 4)
            at += 1 + max(words, 1)
    return None


def rows(
    folder: Path,
    flow_of: Mapping[tuple[int, int, int], str],
    initial_seq: Mapping[str, int],
    to_realtime_ns: int,
    start_ns: int,
    damage: list[Damage],
) -> dict[str, Any]:
    """Columns of the `sockets` records.

    flow_of: flow's name by (source address, source port, destination port); others are left out; rows are in the flows' order
    to_realtime_ns: what to add to the monotonic clock
    """
    times, fields = read(folder / "tcp_probe.bin", folder / "tcp_probe.format", damage)
    flow = np.full(len(times), "", dtype=object)
    for (source, source_port, destination_port), name in flow_of.items():
        high, low = _signed(source >> 64), _signed(source & 0xFFFFFFFFFFFFFFFF)
        mask = (fields["saddr"] == low) & (fields["saddr_high"] == high)
        mask &= (fields["sport"] == source_port) & (fields["dport"] == destination_port)
        flow[mask] = name
    order = [
        np.flatnonzero(flow == name) for name in dict.fromkeys(flow_of.values())
    ]  # flow by flow, which takes least on the disk
    keep = np.concatenate(order) if order else np.zeros(0, dtype=np.int64)
    flow, times = flow[keep], times[keep] + to_realtime_ns
    fields = {name: column[keep] for name, column in fields.items()}
    una, nxt = np.zeros(len(times), dtype=np.int64), np.zeros(len(times), dtype=np.int64)
    for name in {**initial_seq, **dict.fromkeys(flow_of.values())}:
        mask = flow == name
        if not mask.any():
            continue
        # without a capture of the handshake: the first event comes before its ACK is taken up, at the first byte of data
        initial = initial_seq.get(name, (int(fields["snd_una"][mask][0]) - 1) % 2**32)
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


def relative(numbers: Array, initial: int) -> Array:
    """Sequence or acknowledgment numbers as bytes since the initial number, unwrapped past 2^32."""
    if not len(numbers):
        return numbers
    steps = np.diff(numbers, prepend=initial)
    return np.cumsum((steps + 2**31) % 2**32 - 2**31)
