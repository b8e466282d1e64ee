# SPDX-License-Identifier: Apache-2.0
"""The virtual host does what the file says: delay, rate, buffer, loss."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from hosts.virtual.launch import GuestKernel
from network.model import idle_rtt_ns
from plan.model import PROBE_BYTES, from_json
from tests import kept_results, lab

# A flow that keeps the queue full for most of its time: twice the BDP of buffer.
SATURATED = """\
warpbed: 1
name: saturated
title: A full queue
duration: 20s
warmup: 8s
topology: {name: dumbbell, params: {rate: RATE, delay: 4ms, buffer: BUFFER, access_rate: none, access_delay: 1ms}}
hosts: {ack: every, overhead: none}
flows:
  - {name: f1, cca: reno, from: s1, to: d1}
"""


def test_idle_rtt_is_within_10_us_of_the_file(small: Path) -> None:
    (run,) = lab.runs(small)
    plan = from_json((run["path"] / "raw/plan.json").read_text())
    asked = idle_rtt_ns(plan.network, "s1", "d1", PROBE_BYTES)
    measured = json.loads((run["path"] / "raw/guest.json").read_text())["idle_rtt"]["s1 d1"]
    assert abs(measured - asked) < 10_000


@pytest.mark.parametrize(("rate", "buffer"), [("10mbit", "30p"), ("100mbit", "200p"), ("1gbit", "2MB")])
def test_saturated_goodput_and_buffer_are_exact(kernel: GuestKernel, tmp_path: Path, rate: str, buffer: str) -> None:
    text = SATURATED.replace("RATE", rate).replace("BUFFER", buffer)
    if rate == "1gbit":  # seconds of it are enough, and a tenth of the packets
        text = text.replace("20s", "4s").replace("8s", "2s")
    (run,) = lab.runs(kept_results.results(tmp_path, text))
    assert run["verdict"] == {"value": "valid", "reasons": []}
    queue = lab.table(run["path"], "queues")
    here = queue["interface"] == "r1-eth1"
    backlog = queue["backlog_bytes" if buffer.endswith("B") else "backlog_packets"][here]
    size = int(buffer.removesuffix("p").replace("MB", "000000"))
    assert backlog.max() <= size
    assert backlog.max() > size - (1514 if buffer.endswith("B") else 1)
    intervals = lab.table(run["path"], "intervals")
    full = _full_windows(queue["t_s"][here], queue["backlog_packets"][here], intervals["t_s"])
    assert full.sum() >= 5
    # iperf3 writes 128 KiB at a time, so some packets are not full: the share of payload is that of what was sent
    share = intervals["payload_bytes"][full].sum() / intervals["wire_bytes"][full].sum()
    assert 1400 / 1466 < share <= 1448 / 1514 + 1e-9
    asked = float(rate.removesuffix("mbit").replace("1gbit", "1000")) * share
    goodput = intervals["goodput_mbps"][full].mean()
    assert goodput == pytest.approx(asked, rel=0.002)


def _full_windows(t_s: np.ndarray, backlog: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Intervals of 100 ms in which packets waited at every sample, and before and after."""
    busy = backlog > 8
    return np.array([busy[(t_s > edge - 0.1) & (t_s < edge + 0.2)].all() and edge > 0.5 for edge in edges])


def test_loss_is_within_the_99_percent_interval(kernel: GuestKernel, tmp_path: Path) -> None:
    loss = 0.01
    text = lab.SMALL.replace("buffer: 40p", "buffer: 1000p, loss: 1%").replace("cubic", "bbr").replace("5s", "20s")
    (run,) = lab.runs(kept_results.results(tmp_path, text))
    statistics = json.loads((run["path"] / "raw/guest.json").read_text())["queue_statistics"]["wires"]
    wire = next(entry for entry in statistics if entry["dev"] == "w1b")
    offered = wire["packets"] + wire["drops"]
    assert offered > 10_000
    assert abs(wire["drops"] - loss * offered) <= 2.5758 * math.sqrt(offered * loss * (1 - loss)) + 1


def test_no_packet_is_larger_than_the_mtu_and_each_ack_answers_one_packet(kernel: GuestKernel, tmp_path: Path) -> None:
    text = lab.SMALL.replace("flows:", "hosts: {ack: every, mss: 960}\nflows:")
    (run,) = lab.runs(kept_results.results(tmp_path, text))
    flows, acks = lab.table(run["path"], "flows"), lab.table(run["path"], "acks")
    assert flows["wire_bytes"][0] <= flows["packets"][0] * 1014
    assert len(acks["ack"]) >= 0.99 * (flows["packets"][0] - 200)
