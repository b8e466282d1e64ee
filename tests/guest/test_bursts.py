# SPDX-License-Identifier: Apache-2.0
"""`hosts.bursts: none` lets packets leave one by one, where Linux hands on up to a millisecond of them."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from hosts.virtual.launch import GuestKernel
from tests import kept_results, lab

# 50 Mbit/s, 243 us a packet: 1 ms of the pacing rate are four; the sender's own link takes 12 us for one
EXPERIMENT = """\
warpbed: 1
name: bursts
title: Vegas with Linux' bursts and without
duration: 6s
warmup: 2s
topology:
  name: dumbbell
  params: {rate: 50mbit, delay: 9ms, buffer: 100p, access_rate: 1gbit, access_delay: 500us}
hosts: {bursts: linux, ack: every, overhead: none}
flows:
  - {name: f1, cca: vegas, from: s1, to: d1}
sweep:
  parameters: {bursts: hosts.bursts}
  factorial: {bursts: [linux, none]}
"""
NANOSECONDS = 0xA1B23C4D
TOGETHER_S = 20e-6


def departures(pcap: Path) -> list[float]:
    """When each full packet left, s."""
    data = pcap.read_bytes()
    (magic,) = struct.unpack_from("<I", data)
    fine, offset, times = 1e-9 if magic == NANOSECONDS else 1e-6, 24, []
    while offset < len(data):
        seconds, part, kept, length = struct.unpack_from("<4I", data, offset)
        offset += 16 + kept
        if length > 1000:
            times.append(seconds % 1000 + part * fine)
    return times


def test_vegas_sends_one_by_one_and_queues_less(kernel: GuestKernel, tmp_path: Path) -> None:
    share, queue = {}, {}
    for run in lab.runs(kept_results.results(tmp_path, EXPERIMENT)):
        (capture,) = (run["path"] / "raw").glob("s1-*.pcap")
        times = np.array(departures(capture))
        gaps = np.diff(times[times > times[0] + 2])
        assert len(gaps) > 5000
        share[run["params"]["bursts"]] = (gaps < TOGETHER_S).mean()
        queue[run["params"]["bursts"]] = run["metrics"]["queue_mean_packets"]
        assert run["metrics"]["utilization"] > 0.95
    print(share, queue)
    assert share["linux"] > 0.5
    assert share["none"] < 0.02
    assert queue["none"] < queue["linux"]
