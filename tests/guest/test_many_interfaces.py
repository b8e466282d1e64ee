# SPDX-License-Identifier: Apache-2.0
"""Connections of nodes with several interfaces: the kernel gives them the address of the one by which they leave, and their answers
may leave by another one than they arrive by."""

from __future__ import annotations

from pathlib import Path

import pytest

from hosts.virtual.launch import GuestKernel
from network.model import is_answered_by_the_same_link, source_address
from plan.model import from_json
from tests import kept_results, lab

pytestmark = pytest.mark.guest
TO = ("t2a4", "t3b5", "t4c6", "t2b3", "t3a2", "t4a7", "t2c8", "t4b1")
GRAPH = """\
warpbed: 1
name: graph
title: A server of a random graph
duration: 6s
topology: {name: transit_stub, params: {nodes: 100, seed: SEED, rate: 10mbit, buffer: 50p}}
hosts: {overhead: none}
traffic:
  - {name: server, kind: transfers, cca: reno, from: t1, to: [TO], gap: exponential(100ms), life: 6s}
samplers: {tcp_probe: false, sockets: off}
"""


@pytest.mark.parametrize("seed", [1, 2])
def test_every_connection_of_a_node_with_several_interfaces_is_recorded(
    kernel: GuestKernel, tmp_path: Path, seed: int
) -> None:
    """Their sum is what the receiving programs counted, which know of no address and no capture."""
    results = kept_results.results(tmp_path, GRAPH.replace("SEED", str(seed)).replace("TO", ", ".join(TO)))
    (run,) = lab.runs(results)
    network = from_json((run["path"] / "raw/plan.json").read_text()).network
    flows = lab.table(run["path"], "flows")
    assert set(flows["dst"]) == set(TO)
    assert [name for name, packets in zip(flows["flow"], flows["packets"], strict=True) if packets is None] == []
    (server,) = run["metrics"]["applications"]
    assert sum(flows["delivered_bytes"]) == pytest.approx(server["received_bytes"], rel=0.02)
    if seed == 1:  # both happen here
        assert len({source_address(network, "t1", to) for to in TO}) > 1
        assert [to for to in TO if not is_answered_by_the_same_link(network, "t1", to)] != []
