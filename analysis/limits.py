# SPDX-License-Identifier: Apache-2.0
"""Verdict rules: was a flow limited by windows, socket buffers or memory instead of its algorithm?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from analysis.arrays import pq

WINDOW_LIMITED_SHARE = 0.01


def judge(facts: Mapping[str, Any], records: Path) -> Iterator[tuple[str, str, str]]:
    """(rule, severity, message) for each flow and node.

    facts: guest.json; records: the run's folder of records
    """
    yield from _windows(records / "tcp_info.parquet")
    for node, counts in facts.get("tcp_shortages", {}).items():
        text = ", ".join(f"{name} {count}" for name, count in counts.items())
        yield "tcp-memory", "warning", f"{node}: TCP lacked memory ({text}), which limits flows beside their windows"


def _windows(file: Path) -> Iterator[tuple[str, str, str]]:
    if not file.exists():
        return
    table = pq.read_table(file, columns=["flow", "busy_us", "rwnd_limited_us", "sndbuf_limited_us"]).to_pylist()
    last = {row["flow"]: row for row in table}
    for flow, row in last.items():
        for column, what in (("rwnd_limited_us", "receive window"), ("sndbuf_limited_us", "send buffer")):
            if row["busy_us"] and row[column] / row["busy_us"] > WINDOW_LIMITED_SHARE:
                share = row[column] / row["busy_us"]
                yield "window-limited", "warning", f"flow {flow}: the {what} limited it for {share:.1%} of its time"
