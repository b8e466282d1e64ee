# SPDX-License-Identifier: Apache-2.0
"""What the guest's kernel records by itself is what tcpdump and the agent record: captures to the byte, samples to the value."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from hosts.base import Execution
from hosts.virtual.launch import GuestKernel, execute
from testbed.experiments import prepare
from tests import kept_results, lab

LOSSES = lab.SMALL.replace("buffer: 40p", "buffer: 40p, loss: 0.5%")
CASES = {
    "losses": LOSSES,
    "whole packets": lab.SMALL + "captures: {snap: all}\n",
    "in the middle": lab.SMALL + 'captures: {at: ["r1>r2", "r2>r1"]}\n',
    "pings": lab.SMALL + "traffic:\n  - {name: p1, kind: ping, from: s1, to: d1}\n",
}
CLOCK_NS = 1000
"""The agent reads the clock, a nanosecond each time, before it asks; the kernel asks when the sample is due."""


def by_both(folder: Path, text: str) -> list[Path]:
    """The run recorded by the kernel, and by programs."""
    how = {who: text + f"virtual: {{recorded_by: {who}}}\n" for who in ("kernel", "programs")}
    return [kept_results.run(folder, who, text)["path"] for who, text in how.items()]


@pytest.mark.parametrize("case", CASES)
def test_captures_are_those_of_tcpdump_to_the_byte(kernel: GuestKernel, tmp_path: Path, case: str) -> None:
    kernels, programs = (run / "raw" for run in by_both(tmp_path, CASES[case]))
    names = sorted(file.name for file in programs.glob("*.pcap"))
    assert len(names) == 2 and names == sorted(file.name for file in kernels.glob("*.pcap"))
    for name in names:
        assert (programs / name).stat().st_size > 100_000
        assert (kernels / name).read_bytes() == (programs / name).read_bytes(), name


def test_records_of_samples_are_those_of_the_agent(kernel: GuestKernel, tmp_path: Path) -> None:
    runs = by_both(tmp_path, LOSSES)
    for name in ("queues", "tcp_info"):
        one, other = (lab.table(run, name) for run in runs)
        assert len(one["time_ns"]) == len(other["time_ns"]) >= 50
        assert all(0 <= b - a < CLOCK_NS for a, b in zip(one["time_ns"], other["time_ns"], strict=True))
        assert _values(one) == _values(other), name


def _values(table: dict[str, list[Any]]) -> list[list[Any]]:
    """All columns but the times, without the first sample: what starts at that instant has begun or not."""
    first = table["time_ns"][0]
    kept = [number for number, time_ns in enumerate(table["time_ns"]) if time_ns > first + CLOCK_NS]
    return [[str(table[name][number]) for number in kept] for name in sorted(table) if name not in ("time_ns", "t_s")]


def test_a_capture_that_cannot_be_written_fails_the_run(kernel: GuestKernel, tmp_path: Path) -> None:
    """A disk without space never leaves a shorter capture that looks whole."""
    raw = tmp_path / "raw"
    raw.mkdir()
    (raw / "s1-eth0.pcap").symlink_to("/dev/full")
    plan = prepare(lab.write(tmp_path, lab.SMALL)).plans[0]
    outcome = execute(kernel, Execution(plan, raw, min(os.sched_getaffinity(0)), 1, lambda _: None, lambda: False))
    assert outcome.error == {
        "stage": "record", "subject": "s1-eth0.pcap", "detail": "um_tap close: No space left on device"
    }  # fmt: skip
