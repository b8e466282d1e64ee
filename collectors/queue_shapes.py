# SPDX-License-Identifier: Apache-2.0
"""Where the kernel's answer about a node's queues has which number: found once, it holds for nearly every sample."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from collectors.marks import marks
from collectors.samples import Sample, refused

Place = tuple[int, int]
"""Where something begins and ends in an answer."""

BASIC, PACKETS64, QUEUED = struct.Struct("=QI"), struct.Struct("=Q"), struct.Struct("=III")
"""struct gnet_stats_basic; TCA_STATS_PKT64; the beginning of struct gnet_stats_queue: packets and bytes that wait, drops."""
LENGTH_AND_TYPE = 6
"""Of struct nlmsghdr, whose other fields say nothing of its contents."""
INTERFACE_TO_PARENT = 16
"""Of struct tcmsg, whose last field counts references."""
SENT_PACKETS, BACKLOG_BYTES, DROPS = 8, 4, 8
"""Bytes from the beginning of the first and, of the others, of the last of these."""
U32, U64 = np.dtype("=u4"), np.dtype("=u8")


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

    mask: of an answer's bytes, the bits that say where what is; fixed: what they are
    """

    node: str
    queues: tuple[Queue, ...]
    mask: Any
    fixed: Any

    def fitting(self, answers: Any) -> int:
        """How many of these answers, from the first on, are read this way; a row of bytes each."""
        other = ((answers & self.mask) != self.fixed).any(axis=1)
        return int(np.argmax(other)) if other.any() else len(other)

    def counts(self, answers: Any) -> dict[Queue, dict[str, Any]]:
        """Of each interface the queue where packets wait, with the drops and marks of all of them: a managed queue drops or
        marks early, the one inside it holds the packets.

        answers: a row of bytes each, all of this shape; COUNTS are arrays as long as they
        Raises struct.error where a queue says less of its marks than its kind does.
        """
        deepest: dict[int, tuple[Queue, dict[str, Any]]] = {}
        drops: dict[int, Any] = {}
        marked: dict[int, Any] = {}
        for queue in self.queues:
            index = queue.interface
            sent_packets = _numbers(answers, queue.basic + SENT_PACKETS, U32)
            if queue.packets64 is not None:
                sent_packets = _numbers(answers, queue.packets64, U64)
            dropped = _numbers(answers, queue.queue + DROPS, U32)
            drops[index] = np.maximum(drops.get(index, 0), dropped)
            own: Any = 0
            if queue.app is not None:
                own = np.array([marks(queue.kind, memoryview(row.tobytes())) for row in answers[:, slice(*queue.app)]])
            marked[index] = marked.get(index, 0) + own
            if index not in deepest or not queue.is_root:
                deepest[index] = (
                    queue,
                    {
                        "sent_bytes": _numbers(answers, queue.basic, U64),
                        "sent_packets": sent_packets,
                        "backlog_packets": _numbers(answers, queue.queue, U32),
                        "backlog_bytes": _numbers(answers, queue.queue + BACKLOG_BYTES, U32),
                    },
                )
        return {
            queue: {**counts, "drops": drops[index], "marks": np.broadcast_to(marked[index], len(answers))}
            for index, (queue, counts) in deepest.items()
        }


def _numbers(answers: Any, at: int, kind: np.dtype[Any]) -> Any:
    """The number that each answer has at that place."""
    return np.ascontiguousarray(answers[:, at : at + kind.itemsize]).view(kind)[:, 0]


def shape_of(sample: Sample, nodes: Sequence[str], interfaces: Mapping[str, Mapping[str, str]]) -> Shape:
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
    mask = np.frombuffer(bytes(seen), dtype=np.uint8)
    return Shape(node, tuple(queues), mask, np.frombuffer(answer, dtype=np.uint8) & mask)


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
