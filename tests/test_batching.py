# SPDX-License-Identifier: Apache-2.0
"""Batched receivers leave the packets alone: captures with and without them are equal, byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.virtual.launch import GuestKernel
from tests import lab

CASES = {
    "delayed ACKs": lab.SMALL,
    "an ACK for every packet": lab.SMALL.replace("flows:", "hosts: {ack: every}\nflows:"),
    "loss": lab.SMALL.replace("buffer: 40p", "buffer: 40p, loss: 0.5%"),
    "a transfer of a size": lab.SMALL.replace("to: d1", "to: d1, size: 5MB"),
    "two streams": lab.SMALL.replace("to: d1", "to: d1, parallel: 2"),
    "100 Mbit/s": lab.SMALL.replace("20mbit", "100mbit").replace("40p", "200p"),
}


@pytest.mark.parametrize("case", CASES)
def test_captures_are_equal_with_and_without(kernel: GuestKernel, tmp_path: Path, case: str) -> None:
    text = CASES[case]
    made = []
    for batched in ("true", "false"):
        folder = tmp_path / batched
        folder.mkdir()
        (run,) = lab.runs(lab.execute(folder, text + f"virtual: {{batch_receivers: {batched}}}\n"))
        made.append({name: value for name, value in lab.digests(run["path"]).items() if name.endswith(".pcap")})
    assert made[0] == made[1]


def test_batches_are_really_made(small: Path) -> None:
    (run,) = lab.runs(small)
    assert run["environment"]["kernel"]["module_params"]["warp_rxbatch"]["ports"] == "5201"
    batches = int(run["facts"]["module_params_at_end"]["warp_rxbatch"]["batches"])
    payload = lab.table(run["path"], "flows")["delivered_bytes"][0]
    assert 0 < batches < payload / 100_000
