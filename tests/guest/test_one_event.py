# SPDX-License-Identifier: Apache-2.0
"""One event per packet and link gives the packets of the chain of shaper, hand-over and wire, to the nanosecond."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hosts.virtual.launch import GuestKernel
from tests import lab

SMALL = lab.SMALL.replace("9ms", "8ms").replace("500us", "512us")
"""netem, which the chain has, takes delays in units of 64 ns."""
CASES = {
    "a full buffer": SMALL,
    "hosts that take no time": SMALL + "hosts: {overhead: none}\n",
}


def by(folder: Path, how: str, text: str) -> Path:
    here = folder / how
    here.mkdir()
    (run,) = lab.runs(lab.execute(here, text + f"virtual: {{links: {how}}}\n"))
    path: Path = run["path"]
    return path


@pytest.mark.parametrize("case", CASES)
def test_the_packets_are_those_of_the_chain(kernel: GuestKernel, tmp_path: Path, case: str) -> None:
    events, chain = (by(tmp_path, how, CASES[case]) for how in ("events", "chain"))
    names = sorted(file.name for file in (chain / "raw").glob("*.pcap"))
    assert len(names) == 2
    for name in names:
        assert (chain / "raw" / name).stat().st_size > 100_000
        assert (events / "raw" / name).read_bytes() == (chain / "raw" / name).read_bytes(), name
