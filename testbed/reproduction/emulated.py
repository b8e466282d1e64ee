# SPDX-License-Identifier: Apache-2.0
"""Paths that a thesis measured, beside the emulated ones that stand for them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import topologies
from analysis.models.checks import Check, decides, printed, relation
from schema.catalogue import Entry

PATHS = {"a_to_b": "nctu-nctu", "a_to_c": "nctu-ncue", "a_to_d": "nctu-ca"}


def rtts_ms(path: str) -> list[float]:
    """Round-trip times to each hop of an emulated path, without queues and serialisation."""
    links = topologies.build("wan", {"path": path}).links
    return [2 * total / 1e6 for total in itertools.accumulate(link.forward.delay_ns for link in links)]


@decides("ho2008-tab6.1")
def _table_6_1(entry: Entry) -> Iterator[Check]:
    lines: dict[str, int] = {}
    for key, path in PATHS.items():
        row = [float(value) for value in printed(entry, key)]
        here = rtts_ms(path)
        lines[key] = len(here) + 1  # the first line of the traceroute is the sender
        below = all(mine <= theirs + 1e-3 for mine, theirs in zip(here, row[1:], strict=True))
        says = "round-trip times of the emulated path: the last one's, and before it no hop's is longer than the traceroute's"
        yield Check(key, says, below and abs(here[-1] - row[-1]) < 1e-3, row[1:], [round(value, 2) for value in here])
    numbers = [int(word) for word in entry.published.claims[0].replace(",", "").split() if word.isdecimal()]
    yield relation(
        "1", "hops of the emulated paths and the sender", list(lines.values()) == numbers, list(lines.values())
    )
    steps = [b - a for a, b in itertools.pairwise([0.0, *rtts_ms(PATHS["a_to_d"])])]
    jump = steps.index(max(steps[:-1])) + 2
    yield relation("2", "line of the emulated path at which the delay jumps, the last one left out", jump == 7, jump)
