# SPDX-License-Identifier: Apache-2.0
"""`hosts.initial_window` is the number of packets that leave before the first ACK comes back."""

from __future__ import annotations

from pathlib import Path

import pytest

from base.errors import SpecError
from hosts.virtual.launch import GuestKernel
from schema.load import load
from tests import kept_results, lab
from tests.guest.test_bursts import departures

EXPERIMENT = """\
warpbed: 1
name: first
title: The first window of a transfer
duration: 2s
topology:
  name: dumbbell
  params: {rate: 50mbit, delay: 9ms, buffer: 100p, access_rate: 1gbit, access_delay: 500us}
hosts: {overhead: none, initial_window: 10, only: {d1: {initial_window: 30}}}
flows:
  - {name: f1, cca: reno, from: s1, to: d1, size: 60KB, app: file}
sweep:
  parameters: {window: hosts.initial_window}
  factorial: {window: [1, 2, 10]}
"""
RTT_S = 20e-3


def test_a_connection_begins_with_the_window_of_its_own_host(kernel: GuestKernel, tmp_path: Path) -> None:
    sent = {}
    for run in lab.runs(kept_results.results(tmp_path, EXPERIMENT)):
        (capture,) = (run["path"] / "raw").glob("s1-*.pcap")
        times = departures(capture)
        sent[run["params"]["window"]] = sum(time < times[0] + RTT_S / 2 for time in times)
    assert sent == {1: 1, 2: 2, 10: 10}


@pytest.mark.parametrize("value", ["0", "1001", "-3", "ten"])
def test_a_window_that_is_none_is_refused(tmp_path: Path, value: str) -> None:
    text = EXPERIMENT.replace("initial_window: 10", f"initial_window: {value}")
    with pytest.raises(SpecError, match="initial_window"):
        load(lab.write(tmp_path, text))
