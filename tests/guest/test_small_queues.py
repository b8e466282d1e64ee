# SPDX-License-Identifier: Apache-2.0
"""What is on the wire no longer counts against what a sender's TCP may have queued (TCP small queues)."""

from __future__ import annotations

from pathlib import Path

from hosts.virtual.launch import GuestKernel
from tests import kept_results, lab

# The sender's own link has most of the delay: small queues of a millisecond would leave a tenth of the rate. Plain
# netem takes packets from the sender's account by itself; these need warp_wire there.
EXPERIMENT = """\
warpbed: 1
name: small-queues
title: A long first link
duration: 5s
warmup: 3s
topology:
  name: dumbbell
  params: {rate: 20mbit, delay: 1ms, buffer: 100p, access_rate: 1gbit, access_delay: 20ms}
hosts: {ack: every, overhead: none}
flows:
  - {name: f1, cca: reno, from: s1, to: d1}
sweep:
  parameters: {overhead: hosts.overhead, access: topology.params.access_delay}
  list:
    - {overhead: 10us, access: 20ms}
    - {overhead: none, access: 20000.5us}
"""


def test_the_wire_does_not_hold_a_sender_back(kernel: GuestKernel, tmp_path: Path) -> None:
    """82 ms at 20 Mbit/s are 137 packets and the buffer takes 100: after a loss Reno still has 118 under way, and more soon."""
    for run in lab.runs(kept_results.results(tmp_path, EXPERIMENT)):
        assert run["verdict"] == {"value": "valid", "reasons": []}
        assert run["metrics"]["utilization"] >= 0.95, run["path"]
