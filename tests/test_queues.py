# SPDX-License-Identifier: Apache-2.0
"""Queue management does what it is for: the kernel takes its parameters, the queue stays short, marks replace drops."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from testbed.virtual.launch import GuestKernel
from tests import lab
from topologies.link_texts import direction
from topologies.tc import egress, red_burst, red_weight_log

# 20 Mbit/s, 20 ms, a buffer of six BDPs: without management CUBIC fills it
DEEP = lab.SMALL.replace("buffer: 40p", "buffer: 200p")
RED = "red min=8p max=24p p=10%"
SWEEP = f"""\
sweep:
  parameters: {{queue: topology.params.queue}}
  factorial: {{queue: [droptail, codel, fq_codel, pie, {RED}, {RED} adaptive, {RED} ecn, codel ecn, fq_codel ecn]}}
"""


@pytest.fixture(scope="module")
def runs(kernel: GuestKernel, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = lab.execute(tmp_path_factory.mktemp("queues"), DEEP + SWEEP)
    return {run["params"]["queue"]: run for run in lab.runs(folder)}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("queue", ["codel", "fq_codel", "pie", RED, f"{RED} adaptive", "codel ecn", f"{RED} ecn"])
def test_managed_queues_stay_shorter_than_the_buffer(runs: dict[str, Any], queue: str) -> None:
    assert runs[queue]["verdict"]["value"] != "invalid", runs[queue]["verdict"]
    metrics, unmanaged = runs[queue]["metrics"], runs["droptail"]["metrics"]
    assert metrics["queue_mean_packets"] < unmanaged["queue_mean_packets"] / 2
    assert metrics["goodput_mbps"] > 0.75 * unmanaged["goodput_mbps"]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("queue", [RED, "codel", "fq_codel"])
def test_with_ecn_packets_are_marked_instead_of_dropped(runs: dict[str, Any], queue: str) -> None:
    assert runs[queue]["metrics"]["queue_drops"] > 0
    assert runs[f"{queue} ecn"]["metrics"]["queue_drops"] == 0


def test_cake_is_the_shapers_child_with_the_buffers_bytes(kernel: GuestKernel, tmp_path: Path) -> None:
    text = lab.SMALL.replace("buffer: 40p", "buffer: 300KB, queue: cake ecn")
    (run,) = lab.runs(lab.execute(tmp_path, text))
    assert run["verdict"]["value"] != "invalid", run["verdict"]
    assert run["metrics"]["goodput_mbps"] > 15


@pytest.mark.parametrize("weight", [0.25, 0.01, 0.002, 0.0005])
@pytest.mark.parametrize("least", [5, 42, 300])
def test_tc_computes_the_weight_that_was_asked_for(weight: float, least: int) -> None:
    """tc wants a burst and takes the first power of two that lets so many packets in before the threshold is reached."""
    queue = direction({"rate": "10mbit", "buffer": "900p", "queue": f"red min={least}p max=800p weight={weight}"}).queue
    try:
        burst = red_burst(queue)
    except ValueError as error:
        assert "write another weight" in str(error)  # noqa: PT017 — a weight that tc cannot reach is refused at check
        return
    log = next(n for n in range(1, 32) if burst + 1 - least <= (1 - (1 - 2.0**-n) ** burst) * 2**n)
    assert log == red_weight_log(queue) == round(-math.log2(weight))


def test_buffers_inside_managed_queues_are_exact() -> None:
    lines = egress("x", direction({"rate": "10mbit", "buffer": "77p", "queue": f"{RED}"})).lines
    assert lines[-1] == "qdisc add dev x parent 10:1 handle 20: pfifo limit 77"
    assert "limit 77 " in egress("x", direction({"rate": "10mbit", "buffer": "77p", "queue": "codel"})).lines[-1]
