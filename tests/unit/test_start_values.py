# SPDX-License-Identifier: Apache-2.0
"""How connections begin, from the file to routes and rules: ports, packets, refusals, and what comes back from JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.connections import next_hop, start_metrics
from base.errors import SpecError
from network.direction import Direction
from network.model import Link, Network, Node, address_plan
from network.rtnetlink import (
    RTAX_ADVMSS,
    RTAX_CC_ALGO,
    RTAX_CWND,
    RTAX_INITCWND,
    RTAX_LOCK,
    RTAX_QUICKACK,
    RTAX_SSTHRESH,
)
from network.tc import egress, own_modules
from plan.model import ConnectionStart, HostSettings, Plan, from_json
from testbed.experiments import prepare
from tests import lab

FILE = """\
warpbed: 1
name: starts
title: Starts
duration: 9s
topology: {name: dumbbell, params: {pairs: 2, rate: 20mbit, delay: 9ms, buffer: 40p}}
flows:
  - {name: a, cca: reno, from: s1, to: d1, parallel: 3}
  - {name: b, cca: spm, from: s1, to: d2}
  - {name: c, cca: reno, from: s1, to: d2}
  - {name: d, cca: reno, from: s1, to: d2, initial_window: 1, initial_ssthresh: 10, max_window: 100}
  - {name: e, cca: dctcp, from: s2, to: d2}
traffic:
  - {name: t, kind: transfers, cca: liss, from: [s1, s2], to: d1, count: 3, size: 9KB, initial_ssthresh: 10}
  - {name: u, kind: on_off, cca: reno, from: s2, to: d1}
"""


def plan_of(folder: Path, text: str) -> Plan:
    return prepare(lab.write(folder, text)).plans[0]


def test_connections_that_begin_alike_share_a_rule_and_control_connections_have_none(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, FILE)
    ports = {flow.name: flow.client_ports or (0, 0) for flow in plan.flows}
    taken = [port for flow in plan.flows[:4] for port in range(ports[flow.name][0], ports[flow.name][1] + 1)]
    assert len(taken) == len(set(taken)) == 6 and ports["t.s1.d1"] == (0, 0)
    reno, spm, yu, transfers = plan.hosts["s1"].starts
    both = (min(ports["a"], ports["c"])[0], max(ports["a"], ports["c"])[1])
    assert reno == ConnectionStart(("d1", "d2"), both, None, "reno")
    assert reno.own_ports is not None and reno.own_ports[1] - reno.own_ports[0] == 3
    assert spm == ConnectionStart(("d2",), ports["b"], None, "spm")
    assert yu == ConnectionStart(("d2",), ports["d"], None, "reno", 1, 10, 100)
    assert transfers == ConnectionStart(("d1",), None, (5206, 5206), "liss", None, 10)
    assert plan.hosts["d2"].starts == (ConnectionStart(("s2",), (5205, 5205), ports["e"], "dctcp"),)
    assert [m.path.rpartition("/")[2] for m in plan.modules if "start" in m.path] == ["warp_start.ko"]
    assert from_json(plan.to_json()) == plan
    without = FILE.replace(", initial_window: 1, initial_ssthresh: 10, max_window: 100", "").replace(
        ", initial_ssthresh: 10", ""
    )
    assert not [m for m in plan_of(tmp_path, without).modules if "start" in m.path]


@pytest.mark.parametrize(
    ("mss", "sysctls", "packets"), [(None, "", 45), ("960", "", 69), ("960", "net.ipv4.tcp_timestamps: 0", 68)]
)
def test_a_size_is_as_many_packets_as_fit_into_it(tmp_path: Path, mss: str | None, sysctls: str, packets: int) -> None:
    """64 KiB are 65 536 bytes: 45 of 1448, 69 of 948 with time stamps, 68 of 960 without."""
    hosts = ", ".join(filter(None, [mss and f"mss: {mss}", sysctls and f"sysctls: {{{sysctls}}}"]))
    text = FILE.replace("initial_ssthresh: 10, max_window: 100", "initial_ssthresh: 64KiB").replace(
        "flows:", f"hosts: {{{hosts}}}\nflows:"
    )
    assert plan_of(tmp_path, text).hosts["s1"].starts[2].initial_ssthresh == packets


def test_none_is_as_if_nothing_were_said(tmp_path: Path) -> None:
    """Which lets a sweep name the value of some algorithms only."""
    said = FILE.replace("initial_window: 1, initial_ssthresh: 10, max_window: 100", "initial_ssthresh: none")
    assert not any(start.initial_window or start.max_window for start in plan_of(tmp_path, said).hosts["s1"].starts)
    medley = FILE.replace("cca: spm", "cca: medley, initial_ssthresh: none")
    assert plan_of(tmp_path, medley).hosts["s1"].starts[0].initial_ssthresh is None


BAD = {
    "own first window": ("cca: spm", "cca: ftat, initial_window: 3", "flows.1.initial_window: ftat begins with"),
    "said twice": ("cca: spm", "cca: {name: spm, params: {init_ssthresh: 9}}, initial_ssthresh: 3", "says the same"),
    "no threshold": ("cca: spm", "cca: medley, initial_ssthresh: 3", "medley begins with a rule of its own"),
    "above the largest": ("initial_window: 1,", "initial_window: 101,", "101 is above max_window 100"),
    "none": ("initial_window: 1,", "initial_window: 0,", "greater than or equal to 1"),
    "no unit": ("initial_window: 1,", 'initial_window: "64",', "is not a size"),
    "more than there is": ("initial_window: 1,", "initial_window: 5GB,", "a window has at most"),
    "udp": ("u, kind: on_off, cca: reno", "u, kind: ping, max_window: 3", "max_window"),
    "web": ("u, kind: on_off", "u, kind: web, max_window: 3", "max_window"),
}


@pytest.mark.parametrize("case", BAD.values(), ids=BAD)
def test_what_cannot_be_had_is_refused(tmp_path: Path, case: tuple[str, str, str]) -> None:
    old, new, message = case
    with pytest.raises(SpecError) as caught:
        plan_of(tmp_path, FILE.replace(old, new))
    assert message in str(caught.value) and "experiment.yml:" in str(caught.value)


def test_route_options_of_a_connection_are_its_host_s_and_its_own() -> None:
    host = HostSettings(ack="every", mss=960, initial_window=4)
    assert start_metrics(host, ConnectionStart(("d",), cca="liss", initial_ssthresh=10, max_window=3)) == {
        RTAX_QUICKACK: 1, RTAX_ADVMSS: 960, RTAX_CC_ALGO: "liss", RTAX_SSTHRESH: 10, RTAX_CWND: 3,
        RTAX_LOCK: 1 << RTAX_CWND, RTAX_INITCWND: 3,
    }  # fmt: skip
    assert start_metrics(HostSettings(), ConnectionStart(("d",), initial_window=2, max_window=5))[RTAX_INITCWND] == 2
    assert start_metrics(HostSettings(), ConnectionStart(("d",), max_window=50))[RTAX_INITCWND] == 10


def test_the_way_to_a_neighbour_has_no_gateway_and_the_most_particular_route_counts() -> None:
    nodes = tuple(Node(name, "router") for name in "abcd")
    network = Network(nodes, (Link("a", "b"), Link("a", "c"), Link("c", "d")))
    plans = address_plan(network)
    assert next_hop(plans["a"], plans["b"].address) == ("a-eth0", None)
    assert next_hop(plans["a"], plans["d"].address) == ("a-eth1", plans["a"].interfaces[1].peer_address)


def test_acks_wait_in_front_of_everything_else_at_the_interface() -> None:
    alone = egress("x", Direction(ack_wait_ns=40_000_000))
    assert [qdisc.kind for qdisc in alone.own] == ["warp_delack"] and not alone.lines
    paced = egress("x", Direction(rate_bps=10**7, delay_ns=5, ack_wait_ns=40_000_000))
    assert [line.split(" tbf")[0] for line in paced.lines] == ["qdisc add dev x parent 1:1 handle 10:"]
    assert own_modules([Direction(ack_wait_ns=1)]) == ["warp_delack"]
