# SPDX-License-Identifier: Apache-2.0
"""Medley on the path of Ho 2008 Fig 5.1, through the whole pipeline: the growth of Table 4.1, then a short queue."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from hosts.virtual.launch import GuestKernel
from tests import lab

PATH = """\
warpbed: 1
name: medley
title: Ho 2008 Fig 5.1
duration: 60s
warmup: 30s
topology: {name: dumbbell, params: {rate: 50mbit, delay: 48ms, buffer: BUFFER, access_rate: 1gbit, access_delay: 1ms}}
hosts: {ack: every, mss: 960}
flows:
  - {name: f1, cca: medley, from: s1, to: d1}
"""


@pytest.mark.parametrize("buffer", ["50p", "250p"])
def test_the_window_grows_as_in_table_4_1_and_then_holds_the_path(
    kernel: GuestKernel, tmp_path: Path, buffer: str
) -> None:
    """W_i = i^2 - i + 2 without a queue (eq 4.3); then 50 Mbit/s with at most 12 packets in the queue."""
    (run,) = lab.runs(lab.execute(tmp_path, PATH.replace("BUFFER", buffer)))
    assert run["verdict"] == {"value": "valid", "reasons": []}
    windows = [int(w) for w, _ in itertools.groupby(lab.table(run["path"], "sockets")["cwnd_packets"])]
    assert windows[:13] == [i * i - i + 2 for i in range(1, 14)]
    assert run["metrics"]["utilization"] >= 0.99
    assert run["metrics"]["queue_max_packets"] <= 12
    assert run["metrics"]["queue_drops"] == 0
