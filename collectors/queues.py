# SPDX-License-Identifier: Apache-2.0
"""Queue samples → the `queues` records: one row per sample and interface, of the queue where packets wait."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from base.netlink import (
    NEVER_QUEUE,
    STATS_APP,
    STATS_BASIC,
    STATS_PACKETS64,
    STATS_QUEUE,
    TC_H_ROOT,
    TCA_KIND,
    TCA_STATS2,
    TCMSG,
    attributes,
)
from collectors.errors import CollectError, Damage
from collectors.marks import marks
from collectors.samples import Sample, When, as_it_is, payloads, samples

Row = tuple[int, str, str, str, int, int, int, int, int, int]


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
    found: list[Row] = []
    for sample in samples(path, damage, when):
        try:
            found += _deepest(sample, nodes, interfaces)
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
        dict(zip(names, map(list, zip(*found, strict=True)), strict=True)) if found else {n: [] for n in names}
    )
    columns["t_s"] = (np.array(columns["time_ns"], dtype=np.int64) - start_ns) / 1e9
    return columns


def _deepest(sample: Sample, nodes: Sequence[str], interfaces: Mapping[str, Mapping[str, str]]) -> list[Row]:
    """Of each interface the queue where packets wait, with the drops and marks of all of them: a managed queue drops or marks
    early, the one inside it holds the packets."""
    node = nodes[sample.node]
    deepest: dict[int, Row] = {}
    drops: dict[int, int] = {}
    marked: dict[int, int] = {}
    for message in payloads(sample.answer):
        _, index, _, parent, _ = TCMSG.unpack_from(message)
        attrs = attributes(message[TCMSG.size :])
        kind = bytes(attrs[TCA_KIND]).rstrip(b"\0").decode(errors="replace")
        if kind in NEVER_QUEUE or TCA_STATS2 not in attrs:
            continue
        reported = attributes(attrs[TCA_STATS2])
        statistics = _statistics(reported)
        drops[index] = max(drops.get(index, 0), statistics[4])
        marked[index] = marked.get(index, 0) + (marks(kind, reported[STATS_APP]) if STATS_APP in reported else 0)
        if index in deepest and parent == TC_H_ROOT:
            continue
        name = interfaces[node].get(str(index), str(index))
        deepest[index] = (sample.time_ns, node, name, kind, *statistics, 0)
    return [(*row[:8], drops[index], marked[index]) for index, row in deepest.items()]


def _statistics(stats: Mapping[int, memoryview]) -> tuple[int, int, int, int, int]:
    """sent bytes, sent packets, backlog packets, backlog bytes, drops."""
    sent_bytes, sent_packets = struct.unpack_from("=QI", stats[STATS_BASIC])
    if STATS_PACKETS64 in stats:
        (sent_packets,) = struct.unpack_from("=Q", stats[STATS_PACKETS64])
    waiting, backlog, drops = struct.unpack_from("=III", stats[STATS_QUEUE])
    return sent_bytes, sent_packets, waiting, backlog, drops
