# SPDX-License-Identifier: Apache-2.0
"""Large networks, wide paths and long runs: the same packets every time, and nothing but the path limits a flow."""

from __future__ import annotations

import dataclasses
import os
import shutil
from pathlib import Path

import pytest

from base.paths import SENT_PACKAGES
from benchmarks.large_networks import CASES, Case, measure, measure_here
from hosts.virtual import boot, launch
from hosts.virtual.launch import GuestKernel
from tests import lab

CPU = min(os.sched_getaffinity(0))
BY_NAME = {case.name: case for case in CASES}
WIDE = BY_NAME["10 Gbit/s, 200 ms"]
SHORTER = {
    "200 nodes": dataclasses.replace(BY_NAME["200 nodes"], duration_s=1),
    # the window grows to 20 000 packets
    "10 Gbit/s, 200 ms": dataclasses.replace(WIDE, duration_s=3, settled_s=None),
    "1000 s of GEO": dataclasses.replace(BY_NAME["1000 s of GEO"], duration_s=40, settled_s=20),
}
"""`python -m benchmarks.large_networks --twice` does the same in full."""


@pytest.mark.parametrize("case", SHORTER.values(), ids=SHORTER)
def test_large_cases_are_bit_exact(kernel: GuestKernel, case: Case) -> None:
    first, second = measure(case, kernel, CPU), measure(case, kernel, CPU)
    assert first.digest == second.digest
    assert first.goodput_mbps == second.goodput_mbps > 0
    assert (first.verdict, first.limited_s, first.lacked_memory) == ("valid", 0, False)


def test_nothing_limits_a_window_of_250_megabytes(kernel: GuestKernel) -> None:
    """10 Gbit/s × 200 ms: once slow start has opened the window, the path is full, and no window, buffer or memory ever held
    the sender."""
    sizes = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    available_mib = int(sizes["MemAvailable"].split()[0]) >> 10
    if available_mib < 6_000:
        pytest.skip(f"{available_mib} MiB of memory are free; the packets in flight need 4 GiB")
    measured = measure(WIDE, kernel, CPU)
    assert measured.used is not None and measured.used > 0.999
    assert (measured.verdict, measured.limited_s, measured.lacked_memory) == ("valid", 0, False)
    assert measured.memory_mib < 4096


def test_a_run_whose_tcp_lacks_memory_says_so(
    kernel: GuestKernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A guest whose tcp_mem is small: windows that would do are not reached, and the verdict says why."""
    for folder in SENT_PACKAGES:
        shutil.copytree(lab.ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    with open(tmp_path / "agent/tcp_memory.py", "a") as out:
        out.write('\n\ndef unlimited():\n    LIMIT.write_text("100 200 300")\n')
    for module in (launch, boot):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    path = "{name: line, params: {rate: 100mbit, delay: 100ms, buffer: 1000p}}"
    measured = measure_here(Case("small", path, "s1", "d1", 10, settled_s=2), kernel, CPU)
    assert measured.lacked_memory and measured.used is not None and measured.used < 0.5
    assert measured.verdict == "suspect"
