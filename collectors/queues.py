# SPDX-License-Identifier: Apache-2.0
"""Queue samples → the `queues` records: one row per sample and interface, of the queue where packets wait."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from collectors.errors import CollectError, Damage
from collectors.queue_shapes import Queue, shape_of
from collectors.samples import Sample, When, as_it_is, samples

COUNTS = ("sent_bytes", "sent_packets", "backlog_packets", "backlog_bytes", "drops", "marks")
MOST_TOGETHER = 4096
"""Samples that are read as one array."""

Numbered = tuple[int, Sample]
"""A sample and how many came before it."""


@dataclass(frozen=True)
class Part:
    """Rows of one interface, of samples with these numbers. place: among the rows of the same sample; counts: by COUNTS"""

    numbers: Any
    place: int
    node: str
    queue: Queue
    counts: Mapping[str, Any]


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
    times_ns: list[int] = []
    alike: dict[tuple[int, int], list[Numbered]] = {}
    for number, sample in enumerate(samples(path, damage, when)):
        times_ns.append(sample.time_ns)
        alike.setdefault((sample.node, len(sample.answer)), []).append((number, sample))
    unreadable: list[Damage] = []
    parts = [part for group in alike.values() for part in _parts(group, nodes, interfaces, path.name, unreadable)]
    damage += sorted(unreadable, key=lambda one: one.offset)
    return _columns(parts, np.array(times_ns, dtype=np.int64), start_ns)


def _parts(
    group: Sequence[Numbered],
    nodes: Sequence[str],
    interfaces: Mapping[str, Mapping[str, str]],
    file: str,
    unreadable: list[Damage],
) -> Iterator[Part]:
    """Of samples of one node and length: read together as far as they have one shape, in blocks that grow while they have it."""
    at, most, shape = 0, 1, None
    while at < len(group):
        block = group[at : at + most]
        first = block[0][1]
        try:
            shape = shape or shape_of(first, nodes, interfaces)
            answers = np.frombuffer(b"".join(one.answer for _, one in block), dtype=np.uint8)
            answers = answers.reshape(len(block), len(first.answer))
            fitting = shape.fitting(answers)
            if fitting:
                numbers = np.array([number for number, _ in block[:fitting]])
                for place, (queue, counts) in enumerate(shape.counts(answers[:fitting]).items()):
                    yield Part(numbers, place, shape.node, queue, counts)
        except (struct.error, LookupError, CollectError) as error:
            reason = f"a sample of queues that cannot be read: {error!r}"
            fitting = 1 if shape is None else fitting
            unreadable += (Damage(file, one.offset, reason) for _, one in block[:fitting])
        at += fitting
        shape, most = (shape, min(2 * most, MOST_TOGETHER)) if fitting == len(block) else (None, 1)


def _columns(parts: Sequence[Part], times_ns: Any, start_ns: int) -> dict[str, Any]:
    """All rows in the order of their samples."""
    names = ("time_ns", "node", "interface", "qdisc", *COUNTS, "t_s")
    if not parts:
        return {name: [] for name in names}
    lengths = [len(part.numbers) for part in parts]
    numbers = np.concatenate([part.numbers for part in parts])
    order = np.lexsort((np.repeat([part.place for part in parts], lengths), numbers))
    time_ns = times_ns[numbers[order]]
    columns = {"time_ns": time_ns.tolist(), "t_s": (time_ns - start_ns) / 1e9}
    whose = np.repeat(np.arange(len(parts)), lengths)[order]
    for name, words in (
        ("node", [part.node for part in parts]),
        ("interface", [part.queue.name for part in parts]),
        ("qdisc", [part.queue.kind for part in parts]),
    ):
        columns[name] = np.array(words, dtype=object)[whose].tolist()
    for name in COUNTS:
        columns[name] = np.concatenate([part.counts[name] for part in parts])[order].tolist()
    return columns
