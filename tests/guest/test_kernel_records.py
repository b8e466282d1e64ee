# SPDX-License-Identifier: Apache-2.0
"""What the guest's kernel records by itself is what tcpdump and the agent record: captures to the byte, samples to the value."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks import golden
from collectors import tcp_probe
from collectors.errors import Damage
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
FAR = LOSSES.replace("delay: 9ms", "delay: 200ms").replace("duration: 5s\n", "duration: 5s\nip: 6\n")
"""Windows arrive 400 ms apart: the ring has another event for a time of 134 ms and more."""
ALONE = ("acks", "algorithms", "aqm", "traffic")
"""Golden runs with several processes, whose order at one instant a process that records could change."""
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


@pytest.mark.parametrize("text", [LOSSES, FAR], ids=["losses", "far, IPv6"])
def test_events_of_each_ack_are_those_of_the_trace_event(kernel: GuestKernel, tmp_path: Path, text: str) -> None:
    """The kernel's own tcp:tcp_probe, filtered and fetched by the agent, has the same events at the same nanoseconds."""
    (kernels, one), (programs, other) = (_events(run / "raw") for run in by_both(tmp_path, text))
    assert len(programs) > 100 and (np.diff(programs).max() > 1 << 27) == (text == FAR)
    assert np.array_equal(kernels, programs)
    for name, values in other.items():
        assert np.array_equal(one[name], values), name


def _events(raw: Path) -> tuple[npt.NDArray[np.int64], dict[str, npt.NDArray[np.int64]]]:
    damage: list[Damage] = []
    events = tcp_probe.read(raw / "tcp_probe.bin", raw / "tcp_probe.format", damage)
    assert damage == []
    return events


@pytest.mark.parametrize("name", ALONE)
def test_recording_each_ack_changes_no_packet(kernel: GuestKernel, tmp_path: Path, name: str) -> None:
    text = golden.FILES[name].read_text()
    assert "samplers" not in text
    recorded, alone = (
        kept_results.run(tmp_path, who, text + more)["path"]
        for who, more in (("recorded", ""), ("alone", "samplers: {tcp_probe: false}\n"))
    )
    assert not (alone / "raw/tcp_probe.bin").exists() and _events(recorded / "raw")[0].size
    captures = sorted(file.name for file in (recorded / "raw").glob("*.pcap"))
    assert captures and all(
        (recorded / "raw" / capture).read_bytes() == (alone / "raw" / capture).read_bytes() for capture in captures
    )


@pytest.mark.parametrize(("name", "module"), [("s1-eth0.pcap", "um_tap"), ("tcp_probe.bin", "um_probe")])
def test_a_record_that_cannot_be_written_fails_the_run(
    kernel: GuestKernel, tmp_path: Path, name: str, module: str
) -> None:
    """A disk without space never leaves a shorter file that looks whole."""
    raw = tmp_path / "raw"
    raw.mkdir()
    (raw / name).symlink_to("/dev/full")
    plan = prepare(lab.write(tmp_path, lab.SMALL)).plans[0]
    outcome = execute(kernel, Execution(plan, raw, min(os.sched_getaffinity(0)), 1, lambda _: None, lambda: False))
    assert outcome.error == {
        "stage": "record", "subject": name, "detail": f"{module} close: No space left on device"
    }  # fmt: skip
