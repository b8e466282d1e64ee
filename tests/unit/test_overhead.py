# SPDX-License-Identifier: Apache-2.0
"""Hosts take a time for each packet where it is timed anyway, and flows that start together start a little apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from base.errors import SpecError
from hosts.realtime import modules_of
from network import tc
from network.direction import Direction
from network.impairments import Jitter
from network.model import Link, Network, Node
from network.overhead import with_overhead
from network.tc import own_modules
from plan.model import Plan, from_json
from testbed.experiments import prepare
from testbed.runs import spec_digest
from tests import lab

TIMED, UNTIMED = Direction(delay_ns=10**6), Direction()
BOTTLENECK = Direction(rate_bps=10**6, delay_ns=10**7)

TWO = """\
warpbed: 1
name: two
title: Two flows that start together
duration: 5s
topology:
  name: dumbbell
  params: {pairs: 3, rate: 20mbit, delay: 9ms, buffer: 40p, access_rate: 1gbit, access_delay: 500us 500us 1ms}
flows:
  - {name: f1, cca: cubic, from: s1, to: d1}
  - {name: f2, cca: cubic, from: s2, to: d2}
  - {name: f3, cca: cubic, from: s3, to: d3, start: 1s}
"""


AUTO, NONE = "hosts: {overhead: auto}\n", "hosts: {overhead: none}\n"


def overheads(network: Network) -> dict[str, int]:
    """Directions that have one, in ns."""
    by_wire = {}
    for link in network.links:
        by_wire[f"{link.a}>{link.b}"], by_wire[f"{link.b}>{link.a}"] = (
            link.forward.overhead_ns,
            link.backward.overhead_ns,
        )
    return {hop: ns for hop, ns in by_wire.items() if ns}


def chain(first: Direction, last: Direction) -> Network:
    """s – r – q – d, with the bottleneck between the routers."""
    nodes = (Node("s"), Node("r", "router"), Node("q", "router"), Node("d"))
    links = (Link("s", "r", first, first), Link("r", "q", BOTTLENECK, BOTTLENECK), Link("q", "d", last, last))
    return Network(nodes, links)


def test_a_host_takes_its_time_on_its_own_link_where_that_is_timed() -> None:
    assert overheads(with_overhead(chain(TIMED, TIMED), ["s", "d"], 7)) == {"s>r": 7, "d>q": 7}
    assert overheads(with_overhead(chain(TIMED, TIMED), ["s"], 7)) == {"s>r": 7}


def test_a_host_without_a_timed_link_takes_it_at_the_nearest_one_towards_it() -> None:
    assert overheads(with_overhead(chain(UNTIMED, TIMED), ["s", "d"], 7)) == {"q>r": 7, "d>q": 7}
    assert overheads(with_overhead(chain(UNTIMED, UNTIMED), ["s", "d"], 7)) == {"q>r": 7, "r>q": 7}


def test_what_moves_packets_already_and_what_nothing_times_stay_as_they_are() -> None:
    jittered = Direction(delay_ns=10**7, jitter=Jitter(10**6))
    assert overheads(with_overhead(chain(jittered, jittered), ["s", "d"], 7)) == {}
    untimed = Network((Node("s"), Node("d")), (Link("s", "d"),))
    assert overheads(with_overhead(untimed, ["s", "d"], 7)) == {}


def test_one_timer_serves_delay_rate_and_processing_time() -> None:
    """The wire has one queueing discipline: netem's timer would be a second one."""
    direction = Direction(rate_bps=10**7, delay_ns=10**6, overhead_ns=1000)
    place = tc.wire("w0a", "w0b", direction)
    assert [qdisc.kind for qdisc in place.own] == ["warp_wire"]
    assert not [line for line in place.lines if "netem" in line]
    (loss_line,) = [
        line
        for line in tc.wire("w0a", "w0b", Direction(delay_ns=10**6, loss=0.01, overhead_ns=1)).lines
        if "netem" in line
    ]
    assert "delay" not in loss_line and "rate" not in loss_line and "loss" in loss_line


def plan(tmp_path: Path, text: str, seed: int = 1, host: str | None = None) -> Plan:
    return prepare(lab.write(tmp_path, text), seed, host).plans[0]


def test_auto_is_a_full_packet_s_time_at_the_bottleneck(tmp_path: Path) -> None:
    """1514 bytes at 20 Mbit/s take 605.6 µs; 1000 bytes and 14 of Ethernet 405.6 µs."""
    assert set(overheads(plan(tmp_path, lab.SMALL + AUTO).network).values()) == {605_600}
    sized = lab.SMALL + "hosts: {overhead: auto, mss: 960}\n"
    assert set(overheads(plan(tmp_path, sized).network).values()) == {405_600}
    assert set(overheads(plan(tmp_path, lab.SMALL + "hosts: {overhead: 30us}\n").network).values()) == {30_000}
    automatic = plan(tmp_path, lab.SMALL + AUTO)
    assert from_json(automatic.to_json()) == automatic


def test_none_and_real_time_have_no_processing_time_and_start_exactly(tmp_path: Path) -> None:
    for exact in (plan(tmp_path, TWO + NONE), plan(tmp_path, TWO, host="vm"), plan(tmp_path, TWO + AUTO, host="vm")):
        assert overheads(exact.network) == {}
        assert [flow.start_s for flow in exact.flows] == [0.0, 0.0, 1.0]
        assert own_modules(exact.network.directions()) == []
        assert not {"um_link.ko", "warp_wire.ko"} & {Path(module.path).name for module in modules_of(exact)}


def test_flows_that_start_together_start_within_one_base_rtt_each_seed_its_own(tmp_path: Path) -> None:
    """The base RTT of a full frame there and back: 2 x (9 + 2 x 0.5) ms, 4 x 12.112 µs at 1 Gbit/s, 2 x 605.6 µs."""
    rtt_s = 20e-3 + 4 * 12.112e-6 + 2 * 605.6e-6
    starts = [[flow.start_s for flow in plan(tmp_path, TWO + AUTO, seed).flows] for seed in range(1, 41)]
    assert all(0 <= start < rtt_s for row in starts for start in row[:2])
    assert {row[2] for row in starts} == {1.0}
    assert len({row[0] for row in starts}) == len({row[0] - row[1] for row in starts}) == 40
    assert max(row[0] for row in starts) > 0.8 * rtt_s and min(row[0] for row in starts) < 0.2 * rtt_s
    assert starts[0] == [flow.start_s for flow in plan(tmp_path, TWO + AUTO, 1).flows]
    lasts = {flow.duration_s for flow in plan(tmp_path, TWO + AUTO).flows if flow.name != "f3"}
    assert lasts == {5.0}


def test_a_flow_that_says_exactly_and_one_whose_start_is_drawn_stay(tmp_path: Path) -> None:
    exact = plan(tmp_path, TWO.replace("from: s1, to: d1", "from: s1, to: d1, exactly: true") + AUTO)
    assert exact.flows[0].start_s == 0.0 and exact.flows[1].start_s > 0
    rule = "starts:\n  - {of: [f1, f2], within: 2s}\n"
    drawn, without = (plan(tmp_path, TWO + rule + more) for more in (AUTO, NONE))
    assert [flow.start_s for flow in drawn.flows] == [flow.start_s for flow in without.flows]


@pytest.mark.parametrize("value", ["0s", "11s", "some", "5"])
def test_a_time_that_is_none_is_refused(tmp_path: Path, value: str) -> None:
    with pytest.raises(SpecError, match="overhead"):
        plan(tmp_path, lab.SMALL + f"hosts: {{overhead: '{value}'}}\n")


def test_hosts_take_time_where_a_file_says_nothing(tmp_path: Path) -> None:
    assert plan(tmp_path, TWO) == plan(tmp_path, TWO + AUTO)
    assert overheads(plan(tmp_path, lab.SMALL).network) == overheads(plan(tmp_path, lab.SMALL + AUTO).network)


def test_a_file_without_the_key_is_another_run_than_before_in_virtual_time_alone(tmp_path: Path) -> None:
    """Results of before, whose hosts took no time, have the digest of a file whose overhead is null."""
    said, unsaid = (prepare(lab.write(tmp_path, TWO + text)).runs[0] for text in ("hosts: {overhead: null}\n", ""))
    assert said.inputs("virtual") != unsaid.inputs("virtual")
    assert said.inputs("local") == unsaid.inputs("local")
    spec = said.spec()
    before = {**spec, "hosts": {key: value for key, value in spec["hosts"].items() if key != "overhead"}}
    before["flows"] = [{key: value for key, value in flow.items() if key != "exactly"} for flow in spec["flows"]]
    assert spec_digest(before) == said.inputs("virtual").spec


def test_traffic_over_tcp_that_starts_with_others_starts_within_a_base_rtt_too(tmp_path: Path) -> None:
    """f3 starts alone; so does the traffic that says so, and what is no TCP keeps its time."""
    entries = """\
traffic:
  - {name: loud, kind: on_off, cca: reno, from: s3, to: d3, on: 1s, off: 1s}
  - {name: exact, kind: on_off, cca: reno, from: s3, to: d3, exactly: true}
  - {name: wave, kind: cbr, from: s2, to: d2, rate: 1mbit, start: 250ms}
"""
    rtt_s = 20e-3 + 4 * 12.112e-6 + 2 * 605.6e-6
    compiled = [plan(tmp_path, TWO + entries, seed) for seed in range(1, 11)]
    begins = [{flow.name: flow.start_s for flow in one.flows} for one in compiled]
    assert all(0 < row["loud"] < rtt_s for row in begins) and len({row["loud"] for row in begins}) == 10
    assert {row["exact"] for row in begins} == {0.0} and {row["f3"] for row in begins} == {1.0}
    for one, row in zip(compiled, begins, strict=True):
        clients = {part.name: part.settings for part in one.traffic if part.side == "client"}
        assert clients["loud"]["periods"][0][0] == row["loud"]
        assert clients["wave"]["start_s"] == 0.25


@pytest.mark.parametrize(
    ("old", "new", "warned"),
    [
        ("flows:", "hosts: {overhead: none}\nflows:", True),
        ("flows:", "flows:", False),
        ("flows:", "hosts: {overhead: auto}\nflows:", False),
        ("flows:", "hosts: {overhead: none}\nhost: local\nflows:", False),
        ("delay: 9ms", "delay: 9ms jitter=1ms", False),
    ],
)
def test_phase_effects_are_warned_of_where_nothing_moves_packets(
    tmp_path: Path, old: str, new: str, warned: bool
) -> None:
    text = TWO.replace(old, new)
    if "jitter" in new:
        text += "hosts: {overhead: none}\n"
    findings = {finding.rule: finding.severity for finding in prepare(lab.write(tmp_path, text)).findings}
    assert (findings.get("phase-effects") == "warning") is warned


def test_one_flow_and_a_managed_queue_have_no_phase_effects(tmp_path: Path) -> None:
    alone = lab.SMALL + "hosts: {overhead: none}\n"
    managed = TWO.replace("buffer: 40p", "buffer: 40p, queue: codel") + "hosts: {overhead: none}\n"
    for text in (alone, managed):
        assert not [f for f in prepare(lab.write(tmp_path, text)).findings if f.rule == "phase-effects"]


def test_the_plans_of_many_seeds_are_those_of_each_seed_alone(tmp_path: Path) -> None:
    """Runs that differ in their seeds share what no seed changes; drawn starts, drawn traffic and starts that are moved stay their own."""
    text = TWO + (
        "  - {name: f4, cca: dctcp, from: s3, to: d3}\n"
        "traffic:\n"
        "  - {name: loud, kind: on_off, cca: reno, from: s1, to: d1, on: exponential(1s), off: 1s}\n"
        "  - {name: noise, kind: poisson, from: s2, to: d2, rate: 1mbit}\n"
        "starts:\n  - {of: [f3], within: 2s}\n"
        "sweep: {parameters: {buffer: topology.params.buffer}, factorial: {buffer: [40p, 4p]}}\n"
        "repeats: 3\n"
    )
    file = lab.write(tmp_path, text.replace(", start: 1s}", "}"))
    together = prepare(file)
    alone = {seed: prepare(file, seed) for seed in (1, 2, 3)}
    assert [run.seed for run in together.runs] == [1, 2, 3, 1, 2, 3]
    assert together.plans == [alone[seed].plans[cell] for cell in (0, 1) for seed in (1, 2, 3)]
    assert len({plan.to_json() for plan in together.plans}) == 6
    assert {one.rule for one in together.findings} >= {"dctcp-marks"}
    assert set(together.findings) == {one for prepared in alone.values() for one in prepared.findings}
