# SPDX-License-Identifier: Apache-2.0
"""Decode the agent's samples of sockets and queues (plan.samples has the format)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from base.netlink import NLMSG_DONE, NLMSG_ERROR, messages
from base.small_files import SAMPLES_BYTES, read_small
from collectors.errors import CollectError, Damage
from plan.samples import MAGIC, RECORD


class Sample(NamedTuple):
    """One answer of the kernel: when, of which node (its index in the plan), the netlink messages; its place in the file."""

    time_ns: int
    node: int
    answer: memoryview
    offset: int


When = Callable[[int, int], int]
"""A node's index and a time on its clock (ns) → the run's time."""


def as_it_is(_node: int, time_ns: int) -> int:
    """The nodes share the run's clock."""
    return time_ns


def samples(path: Path, damage: list[Damage], when: When = as_it_is) -> Iterator[Sample]:
    """All samples of a file; of one that is cut those before, and the place goes to `damage`.

    Raises CollectError for a file that is missing or holds no samples.
    """
    try:
        raw = memoryview(read_small(path, SAMPLES_BYTES))
    except OSError as error:
        raise CollectError(f"{path}: {error.strerror}") from error
    if raw[: len(MAGIC)] != MAGIC:
        raise CollectError(f"{path}: byte 0: not a file of samples")
    offset = len(MAGIC)
    size = len(raw)
    while offset < size:
        start = offset + RECORD.size
        time_ns, node, length = RECORD.unpack_from(raw, offset) if start <= size else (0, 0, 0)
        if start + length > size:
            damage.append(
                Damage(path.name, offset, f"the last record is cut: {start + length} bytes needed, {size} there")
            )
            return
        yield Sample(when(node, time_ns), node, raw[start : start + length], offset)
        offset = start + length


def payloads(answer: memoryview) -> Iterator[memoryview]:
    """Payloads of the netlink messages in an answer, up to its end mark."""
    for kind, _, payload in messages(answer):
        if kind == NLMSG_DONE:
            return
        if kind == NLMSG_ERROR:
            raise refused(payload)
        yield payload


def refused(payload: memoryview) -> CollectError:
    """The error that an error message of the kernel means."""
    return CollectError(f"the kernel refused a sample (error {struct.unpack_from('=i', payload)[0]})")
