# SPDX-License-Identifier: Apache-2.0
"""One event per packet and link gives the packets of the chain of shaper, hand-over and wire, to the nanosecond."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hosts.virtual.launch import GuestKernel
from tests import kept_results, lab
from tests.links_lab import Traffic, send

SMALL = lab.SMALL.replace("9ms", "8ms").replace("500us", "512us")
"""netem, which the chain has, takes delays in units of 64 ns."""
MIXED = """\
traffic:
  - {name: up, kind: udp, from: d1, to: s1, rate: 3mbit, size: 300}
  - {name: p1, kind: ping, from: s1, to: d1}
"""
BOTH_WAYS = """\
  - {name: f2, cca: reno, from: d1, to: s1}
"""
CASES = {
    "a full buffer": SMALL,
    "hosts that take no time": SMALL + "hosts: {overhead: none}\n",
    "a buffer in bytes": SMALL.replace("40p", "20KB") + "  - {name: f2, cca: reno, from: d1, to: s1}\n",
}
FRAMES = 2000


def drawn(number: int) -> Traffic:
    """Frames of all sizes over a link that nobody chose, up to three times as many as it carries."""
    draw = random.Random(number)
    rate_kbps = round(10 ** draw.uniform(2, 6))
    buffer = draw.choice([f"{draw.randint(1, 90)}p", f"{draw.randint(2, 90)}KB"])
    words = {"rate": f"{rate_kbps}kbit", "delay": f"{draw.randint(0, 2000) * 8}us", "buffer": buffer}
    sizes = [draw.choice([draw.randint(60, 1514), 1514]) for _ in range(17)]
    frame_ns = sum(sizes) / len(sizes) * 8e6 / rate_kbps
    overhead_ns = draw.choice([0, round(frame_ns)])
    return Traffic(words, FRAMES, round(frame_ns / draw.uniform(0.5, 3)), sizes, overhead_ns)


def test_drawn_links_drop_and_deliver_the_same_frames_at_the_same_times(kernel: GuestKernel, tmp_path: Path) -> None:
    jobs = {f"drawn {number}": drawn(number) for number in range(24)}
    events, chain = (send(kernel, tmp_path / how, jobs, how=how) for how in ("events", "chain"))
    for name in jobs:
        assert FRAMES / 4 < len(events[name]) == len(chain[name]), name
        for column in ("number", "arrived", "length", "good"):
            assert (events[name][column] == chain[name][column]).all(), jobs[name]
    dropping = [name for name in jobs if len(events[name]) < FRAMES]
    assert len(jobs) / 4 < len(dropping) < len(jobs)


def test_how_long_the_boot_took_moves_no_frame(kernel: GuestKernel, tmp_path: Path) -> None:
    """Else the two ways could not be held against each other: files of this machine decide how long each of their guests boots."""
    jobs = {f"drawn {number}": replace(drawn(number), count=FRAMES // 10) for number in range(8)}
    soon, late = (send(kernel, tmp_path / str(s), jobs, how="events", later_s=s) for s in (0, 2.7))
    for name in jobs:
        assert len(soon[name]) > 0 and (soon[name] == late[name]).all(), name


@pytest.mark.parametrize("case", CASES)
def test_the_packets_are_those_of_the_chain(kernel: GuestKernel, tmp_path: Path, case: str) -> None:
    events, chain = (
        kept_results.run(tmp_path, how, CASES[case] + f"virtual: {{links: {how}}}\n")["path"]
        for how in ("events", "chain")
    )
    names = sorted(file.name for file in (chain / "raw").glob("*.pcap"))
    assert len(names) == 2
    for name in names:
        one, other = (list(packets(run / "raw" / name)) for run in (events, chain))
        assert len(one) > 1000 and one == other, name
    assert queue_samples(events) == queue_samples(chain)


def packets(pcap: Path) -> Iterator[bytes]:
    """The records of a capture up to the end of the flows' time.

    Then iperf3's own timers decide, which the kernel lets end with any other timer within a thousandth of their time
    (select), and the chain has more of these.
    """
    data, at, first_ns = pcap.read_bytes(), 24, None
    while at < len(data):
        seconds, nanoseconds, captured, _ = struct.unpack_from("<4I", data, at)
        now_ns = seconds * 10**9 + nanoseconds
        first_ns = now_ns if first_ns is None else first_ns
        if now_ns - first_ns > 5 * 10**9:
            return
        yield data[at : at + 16 + captured]
        at += 16 + captured


def queue_samples(run: Path) -> list[tuple[Any, ...]]:
    """What waited at the routers in each sample, how much had left, and what was dropped."""
    table = lab.table(run, "queues")
    columns = [
        "time_ns",
        "node",
        "interface",
        *("backlog_packets", "backlog_bytes", "sent_packets", "sent_bytes", "drops"),
    ]
    rows = sorted(row for row in zip(*(table[name] for name in columns), strict=True) if row[1].startswith("r"))
    assert len(rows) > 1000 and any(backlog for _, _, _, backlog, *_ in rows)
    return rows
