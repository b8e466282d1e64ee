# SPDX-License-Identifier: Apache-2.0
"""Queue management does what it is for: the kernel takes its parameters, the queue stays short, marks replace drops."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from hosts.virtual.launch import GuestKernel
from network.link_words import direction
from network.red_netlink import idle_table
from network.tc import egress
from tests import kept_results, lab

# 20 Mbit/s, 20 ms, a buffer of six BDPs: without management CUBIC fills it. All is delivered before the last sample.
DEEP = lab.SMALL.replace("buffer: 40p", "buffer: 200p").replace("to: d1}", "to: d1, stop: 4500ms}")
RED = "red min=8p max=24p p=10%"
PACKETS = RED.replace("red", "red_packets")
SWEEP = f"""\
sweep:
  parameters: {{queue: topology.params.queue}}
  factorial: {{queue: [droptail, codel, fq_codel, pie, {RED}, {RED} adaptive, {RED} ecn, codel ecn, fq_codel ecn, pie ecn,
              {PACKETS}, {PACKETS} ecn]}}
"""


@pytest.fixture(scope="module")
def runs(kernel: GuestKernel, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = kept_results.results(tmp_path_factory.mktemp("queues"), DEEP + SWEEP)
    return {run["params"]["queue"]: run for run in lab.runs(folder)}


@pytest.mark.parametrize(
    "queue", ["codel", "fq_codel", "pie", RED, f"{RED} adaptive", "codel ecn", f"{RED} ecn", PACKETS]
)
def test_managed_queues_stay_shorter_than_the_buffer(runs: dict[str, Any], queue: str) -> None:
    assert runs[queue]["verdict"]["value"] != "invalid", runs[queue]["verdict"]
    metrics, unmanaged = runs[queue]["metrics"], runs["droptail"]["metrics"]
    assert metrics["queue_mean_packets"] < unmanaged["queue_mean_packets"] / 2
    assert metrics["goodput_mbps"] > 0.75 * unmanaged["goodput_mbps"]


@pytest.mark.parametrize("queue", [RED, PACKETS, "codel", "fq_codel"])
def test_with_ecn_packets_are_marked_instead_of_dropped(runs: dict[str, Any], queue: str) -> None:
    assert runs[queue]["metrics"]["queue_drops"] > 0
    assert runs[f"{queue} ecn"]["metrics"]["queue_drops"] == 0


def assert_marks_are_seen_everywhere(run: dict[str, Any]) -> None:
    """What the queue says it marked arrives marked; the receiver echoes it until the sender says that it has slowed down."""
    marks = lab.table(run["path"], "queues")["marks"].max()
    flow = {name: values[0] for name, values in lab.table(run["path"], "flows").items()}
    assert marks == run["metrics"]["queue_marks"] == flow["ce_packets"] > 0
    assert flow["ecn"] and flow["ect_packets"] > 0.99 * flow["packets"]
    assert 0 < flow["cwr_packets"] <= flow["ce_packets"] <= flow["ece_packets"]


@pytest.mark.parametrize("queue", [RED, PACKETS, "codel", "fq_codel", "pie"])
def test_marks_are_counted_at_the_queue_and_on_the_wire(runs: dict[str, Any], queue: str) -> None:
    assert_marks_are_seen_everywhere(runs[f"{queue} ecn"])
    plain = lab.table(runs[queue]["path"], "flows")
    assert runs[queue]["metrics"]["queue_marks"] == 0
    assert not plain["ecn"][0] and plain["ce_packets"][0] == plain["ece_packets"][0] == plain["cwr_packets"][0] == 0


def test_cake_is_the_shapers_child_with_the_buffers_bytes(kernel: GuestKernel, tmp_path: Path) -> None:
    text = DEEP.replace("buffer: 200p", "buffer: 300KB, queue: cake ecn")
    (run,) = lab.runs(kept_results.results(tmp_path, text))
    assert run["verdict"]["value"] != "invalid", run["verdict"]
    assert_marks_are_seen_everywhere(run)
    # A mark comes when packets have waited 5 ms (cake's target), at a window of 25/20 of what fills 20 ms, and CUBIC leaves 0.7 of it:
    # while cake has all of the link, and marks no more than once, the rate never falls below 0.875 of its 20 Mbit/s.
    most_mbps = 20 * 1448 / 1514
    seconds = lab.table(run["path"], "intervals")
    rates = [
        delivered * 8e-6 / width
        for at, width, delivered in zip(seconds["t_s"], seconds["width_s"], seconds["delivered_bytes"], strict=True)
        if 1 <= at < 4  # after slow start, while there is something to send
    ]
    assert len(rates) == 30
    assert 0.875 * most_mbps <= min(rates)
    assert max(rates) <= most_mbps + 1448 * 8e-6 / 0.1  # a packet that was on its way


# Slow starts together drive RED's average far above its upper threshold: all is dropped until the average has fallen.
CROWD = DEEP.replace("to: d1", "to: d1, parallel: 4").replace("buffer: 200p", f"buffer: 200p, queue: {RED}")


def test_red_forgets_while_its_queue_is_empty(kernel: GuestKernel, tmp_path: Path) -> None:
    """Below tbf, which never lets RED see an empty queue, these flows stand still for most of a minute."""
    (run,) = lab.runs(kept_results.results(tmp_path, CROWD + "hosts: {overhead: none}\n"))
    assert run["metrics"]["queue_drops"] > 50
    assert run["metrics"]["utilization"] > 0.75


@pytest.mark.parametrize(("log", "packet_us"), [(9, 605.6), (9, 6056), (2, 12.1), (5, 0.5), (14, 1211)])
def test_reds_average_halves_as_its_weight_says(log: int, packet_us: float) -> None:
    """Floyd and Jacobson 1993: (1 - w)^m after m packets' time, here to within half a halving from the second cell on."""
    cell_log, shifts = idle_table(log, packet_us)
    assert len(shifts) == 256 and max(shifts) < 32 and shifts[0] == 0
    for cell in range(2, 20):
        halvings = -cell * 2**cell_log / packet_us * math.log2(1 - 2.0**-log)
        assert abs(shifts[cell] - min(31, halvings)) <= 0.5


def test_buffers_inside_managed_queues_are_exact() -> None:
    lines = egress("x", direction({"rate": "10mbit", "buffer": "77p", "queue": f"{RED}"})).lines
    assert lines[-1] == "qdisc add dev x parent 10:1 handle 20: pfifo limit 77"
    assert "limit 77 " in egress("x", direction({"rate": "10mbit", "buffer": "77p", "queue": "codel"})).lines[-1]
