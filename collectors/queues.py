# SPDX-License-Identifier: Apache-2.0
"""Queue samples → the `queues` records: one row per sample and interface, of the queue where packets wait."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from base.netlink import (
    ATTRIBUTE,
    HEADER,
    NEVER_QUEUE,
    NLMSG_DONE,
    NLMSG_ERROR,
    STATS_APP,
    STATS_BASIC,
    STATS_PACKETS64,
    STATS_QUEUE,
    TC_H_ROOT,
    TCA_KIND,
    TCA_STATS2,
    TCMSG,
    TYPE_MASK,
)
from collectors.errors import CollectError, Damage
from collectors.marks import marks
from collectors.samples import Sample, When, as_it_is, refused, samples

Row = tuple[int, str, str, str, int, int, int, int, int, int]
Place = tuple[int, int]
"""Where something begins and ends in an answer."""

BASIC, PACKETS64, QUEUED = struct.Struct("=QI"), struct.Struct("=Q"), struct.Struct("=III")
"""struct gnet_stats_basic; TCA_STATS_PKT64; the beginning of struct gnet_stats_queue: packets and bytes that wait, drops."""
LENGTH_AND_TYPE = 6
"""Of struct nlmsghdr, whose other fields say nothing of its contents."""
INTERFACE_TO_PARENT = 16
"""Of struct tcmsg, whose last field counts references."""


def rows(
    path: Path,
    nodes: Sequence[str],
    interfaces: Mapping[str, Mapping[str, str]],
    start_ns: int,
    damage: list[Damage],
    when: When = as_it_is,
) -> dict[str, Any]:
    """Columns of the `queues` records.

    nodes: the plan's node names, by index
    interfaces: per node, interface name by index (as text)
    """
    states: list[Row] = []
    shapes: dict[tuple[int, int], Shape] = {}
    for sample in samples(path, damage, when):
        try:
            key = sample.node, len(sample.answer)
            if key not in shapes or not shapes[key].fits(sample.answer):
                shapes[key] = _shape(sample, nodes, interfaces)
            states += shapes[key].rows(sample)
        except (struct.error, LookupError, CollectError) as error:
            damage.append(Damage(path.name, sample.offset, f"a sample of queues that cannot be read: {error!r}"))
    names = [
        "time_ns",
        "node",
        "interface",
        "qdisc",
        "sent_bytes",
        "sent_packets",
        "backlog_packets",
        "backlog_bytes",
        "drops",
        "marks",
    ]
    columns: dict[str, Any] = (
        dict(zip(names, map(list, zip(*states, strict=True)), strict=True)) if states else {n: [] for n in names}
    )
    columns["t_s"] = (np.array(columns["time_ns"], dtype=np.int64) - start_ns) / 1e9
    return columns


@dataclass(frozen=True)
class Queue:
    """Where an answer has the statistics of one queueing discipline; `app` where its own are, None where it has none."""

    interface: int
    name: str
    kind: str
    is_root: bool
    basic: int
    packets64: int | None
    queue: int
    app: tuple[int, int] | None


@dataclass(frozen=True)
class Shape:
    """What the answers of a node have in common: all but the numbers. Found once, it holds for nearly every sample.

    mask: of an answer as one number, the bits that say where what is; fixed: what they are
    """

    node: str
    queues: tuple[Queue, ...]
    mask: int
    fixed: int

    def fits(self, answer: memoryview) -> bool:
        """Whether an answer of the same length is read the same way."""
        return int.from_bytes(answer, "little") & self.mask == self.fixed

    def rows(self, sample: Sample) -> list[Row]:
        """Of each interface the queue where packets wait, with the drops and marks of all of them: a managed queue drops or
        marks early, the one inside it holds the packets."""
        answer = sample.answer
        deepest: dict[int, Row] = {}
        drops: dict[int, int] = {}
        marked: dict[int, int] = {}
        for queue in self.queues:
            index = queue.interface
            sent_bytes, sent_packets = BASIC.unpack_from(answer, queue.basic)
            if queue.packets64 is not None:
                (sent_packets,) = PACKETS64.unpack_from(answer, queue.packets64)
            waiting, backlog, dropped = QUEUED.unpack_from(answer, queue.queue)
            drops[index] = max(drops.get(index, 0), dropped)
            own = 0 if queue.app is None else marks(queue.kind, answer[slice(*queue.app)])
            marked[index] = marked.get(index, 0) + own
            if index not in deepest or not queue.is_root:
                counts = (sent_bytes, sent_packets, waiting, backlog, dropped)
                deepest[index] = (sample.time_ns, self.node, queue.name, queue.kind, *counts, 0)
        return [(*row[:8], drops[index], marked[index]) for index, row in deepest.items()]


def _shape(sample: Sample, nodes: Sequence[str], interfaces: Mapping[str, Mapping[str, str]]) -> Shape:
    """The shape of a sample's answer; raises CollectError, LookupError or struct.error for one that cannot be read."""
    answer, node, seen = sample.answer, nodes[sample.node], bytearray(len(sample.answer))
    queues = []
    for begin, end in _messages(answer, seen):
        if end - begin < TCMSG.size:
            raise struct.error(f"a message of {end - begin} bytes")
        _, index, _, parent, _ = TCMSG.unpack_from(answer, begin)
        _see(seen, begin, begin + INTERFACE_TO_PARENT)
        about = _attributes(answer, (begin + TCMSG.size, end), seen)
        _see(seen, *about[TCA_KIND])
        kind = bytes(answer[slice(*about[TCA_KIND])]).rstrip(b"\0").decode(errors="replace")
        if kind in NEVER_QUEUE or TCA_STATS2 not in about:
            continue
        reported = _attributes(answer, about[TCA_STATS2], seen)
        queues.append(
            Queue(
                index,
                interfaces[node].get(str(index), str(index)),
                kind,
                parent == TC_H_ROOT,
                _begin(reported[STATS_BASIC], BASIC),
                _begin(reported[STATS_PACKETS64], PACKETS64) if STATS_PACKETS64 in reported else None,
                _begin(reported[STATS_QUEUE], QUEUED),
                reported.get(STATS_APP),
            )
        )
    mask = int.from_bytes(seen, "little")
    return Shape(node, tuple(queues), mask, int.from_bytes(answer, "little") & mask)


def _see(seen: bytearray, begin: int, end: int) -> None:
    """Note that these bytes decide how the answer is read."""
    seen[begin:end] = b"\xff" * (end - begin)


def _begin(place: Place, kind: struct.Struct) -> int:
    if place[1] - place[0] < kind.size:
        raise struct.error(f"statistics of {place[1] - place[0]} bytes, {kind.size} needed")
    return place[0]


def _messages(answer: memoryview, seen: bytearray) -> Iterator[Place]:
    """Payloads of the messages up to the end mark; as base.netlink.messages, but places instead of contents."""
    offset = 0
    while offset + HEADER.size <= len(answer):
        length, kind, _, _, _ = HEADER.unpack_from(answer, offset)
        _see(seen, offset, offset + LENGTH_AND_TYPE)
        if length < HEADER.size or kind == NLMSG_DONE:
            return
        begin, end = offset + HEADER.size, min(offset + length, len(answer))
        if kind == NLMSG_ERROR:
            raise refused(answer[begin:end])
        yield begin, end
        offset += (length + 3) & ~3


def _attributes(answer: memoryview, within: Place, seen: bytearray) -> dict[int, Place]:
    """As base.netlink.attributes, but places instead of contents."""
    places, (offset, end) = {}, within
    while offset + ATTRIBUTE.size <= end:
        length, kind = ATTRIBUTE.unpack_from(answer, offset)
        _see(seen, offset, offset + ATTRIBUTE.size)
        if length < ATTRIBUTE.size:
            break
        places[kind & TYPE_MASK] = offset + ATTRIBUTE.size, min(offset + length, end)
        offset += (length + 3) & ~3
    return places
