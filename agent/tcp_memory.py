# SPDX-License-Identifier: Apache-2.0
"""The kernel's bound on the memory of all TCP sockets together, which limits a flow without a trace in its TCP_INFO.

By default a machine gives TCP an eighth of its memory (tcp_mem, in pages); beyond it sockets wait for memory while neither
rwnd_limited nor sndbuf_limited counts.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from agent.namespaces import entered

LIMIT = Path("/proc/sys/net/ipv4/tcp_mem")
COUNTERS = (
    "TCPMemoryPressures", "TCPAbortOnMemory", "PruneCalled", "RcvPruned", "OfoPruned", "TCPBacklogDrop", "TCPRcvQDrop",
    "TCPWqueueTooBig",
)  # fmt: skip
"""Of /proc/net/netstat: what happens where one socket or all of them lack memory; 0 where nothing but the path limits."""


def unlimited() -> None:
    """Let TCP use all memory of a machine that is the run's own (its first network namespace's setting holds for all)."""
    pages = str(os.sysconf("SC_PHYS_PAGES"))
    LIMIT.write_text(" ".join([pages] * 3))


def shortages(pids: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """Those of COUNTERS that are not 0, by node, where there are any; nodes by the process that holds their namespace."""
    short_of = {}
    for name, pid in pids.items():
        with entered(pid):
            counted = _counters(Path("/proc/thread-self/net/netstat").read_text())
        if short := {counter: counted[counter] for counter in COUNTERS if counted.get(counter)}:
            short_of[name] = short
    return short_of


def _counters(text: str) -> dict[str, int]:
    """Pairs of lines, of names and of values, each behind the protocol's name."""
    lines = [line.split()[1:] for line in text.splitlines()]
    return {
        name: int(value)
        for names, values in zip(lines[::2], lines[1::2], strict=True)
        for name, value in zip(names, values, strict=True)
    }
