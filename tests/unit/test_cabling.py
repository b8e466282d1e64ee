# SPDX-License-Identifier: Apache-2.0
"""Nodes on machines: who does what, and many machines' raw files as one host's."""

from __future__ import annotations

import json
import struct
import subprocess
from pathlib import Path

import pytest

from agent.algorithms import needed
from hosts.nodes import cabling
from hosts.nodes.merge import MergeError, Part, merge
from hosts.virtual import boot
from network.direction import Direction
from network.model import Link, Network, Node
from plan.model import Plan, cabling_from_json
from plan.samples import MAGIC, RECORD
from testbed.experiments import prepare
from tests import lab

pytestmark = pytest.mark.real_host
LINE = """\
warpbed: 1
name: line
title: Sender, router, receiver
duration: 4s
topology: {name: line, params: {rate: 10mbit, delay: 10ms, buffer: 20p}}
flows:
  - {name: f1, cca: cubic, from: s1, to: d1}
"""


def plan_of(tmp_path: Path, text: str = LINE) -> Plan:
    return prepare(lab.write(tmp_path, text)).plans[0]


def test_a_wire_is_at_the_routers_end_and_every_interface_has_its_cable(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    names = cabling.interface_links(plan.network)
    assert names == {"s1-eth0": 0, "r1-eth0": 0, "r1-eth1": 1, "d1-eth0": 1}
    stations = cabling.cabling(plan, {name: f"nic-{name}" for name in names})
    assert set(stations) == {"s1", "r1", "d1"}
    assert stations["r1"].wires == (1,) and stations["s1"].wires == () and stations["d1"].wires == ()
    assert stations["r1"].nics == {"r1-eth0": "nic-r1-eth0", "r1-eth1": "nic-r1-eth1"}
    assert cabling_from_json(stations["r1"].to_json()) == stations["r1"]


def test_a_machine_needs_the_algorithms_of_what_it_sends_only(tmp_path: Path) -> None:
    """Receivers and routers need no kernel of ours; DCTCP's receiver takes part (RFC 8257)."""
    text = (
        LINE
        + "  - {name: f2, cca: dctcp, from: s1, to: d1}\n  - {name: f3, cca: vegas, from: d1, to: s1, app: file, size: 1MB}\n"
    )
    plan = plan_of(tmp_path, text)
    by_machine = {node: needed(plan, node) for node in (None, "s1", "r1", "d1")}
    assert by_machine == {
        None: {"cubic", "dctcp", "vegas"},
        "s1": {"cubic", "dctcp"},
        "r1": set(),
        "d1": {"vegas", "dctcp"},
    }


def test_a_delay_between_two_hosts_has_no_place() -> None:
    slow = Direction(delay_ns=1_000_000)
    network = Network((Node("a"), Node("b")), (Link("a", "b", slow, slow),))
    (problem,) = cabling.problems(network)
    assert "a–b" in problem and "put a router between them" in problem
    assert cabling.problems(Network(network.nodes, (Link("a", "b"),))) == []


def test_a_node_with_more_links_than_a_machine_has_places_is_reported(tmp_path: Path) -> None:
    (problem,) = cabling.problems(plan_of(tmp_path).network, most_cables=1)
    assert problem.startswith("r1: 2 links")


IDLE_RTT = """
from unittest import mock
from agent.machine import MachineNetwork
from agent.network import BuiltNetwork
from network.model import Link, Network, Node, address_plan

links = (Link("a", "c"), Link("a", "b"), Link("b", "d"), Link("c", "e"), Link("e", "d"))
plans = address_plan(Network((Node("a"), *(Node(name, "router") for name in "bce"), Node("d")), links))
for kind in (BuiltNetwork, MachineNetwork):
    network = kind.__new__(kind)
    network.plans = plans
    with mock.patch(f"{kind.__module__}.echo_rtt_ns", return_value=1) as echo, mock.patch.object(kind, "pid", return_value=1):
        network.idle_rtt_ns("a", "d")
    print(*echo.call_args.args)
print(*(interface.address for interface in plans["a"].interfaces), plans["d"].address)
"""


def test_the_idle_rtt_is_that_of_the_address_that_flows_come_from() -> None:
    """Not that of whichever interface leads there: from a to d it is the second one, and answers to it may take another path."""
    line = [boot.SYSTEM_PYTHON, "-c", IDLE_RTT]
    done = subprocess.run(line, cwd=lab.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *asked, (first, _, destination) = (line.split() for line in done.stdout.splitlines())
    assert asked == [["1", destination, first]] * 2


def machine(folder: Path, node: str, clock_ns: int, **facts: object) -> Part:
    """What a machine leaves whose clock is clock_ns ahead; its run starts at 1 s of everyone's time."""
    folder = folder / node
    folder.mkdir()
    own = {
        "ok": True, "environment": {"nodes": {node: {"interfaces": {"1": f"{node}-eth0"}}}}, "idle_rtt": {},
        "queue_statistics": {node: []}, "capture_drops": {f"{node}-eth0": 0}, "tcp_probe_lost": 0,
        "start_realtime_ns": 10**9 + clock_ns, "start_monotonic_ns": 5 * 10**9, "realtime": {"timers": 1}, **facts,
    }  # fmt: skip
    (folder / "guest.json").write_text(json.dumps(own))
    header = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1)
    at = 2 * 10**9 + clock_ns
    frame = bytes(54)
    record = struct.pack("<IIII", at // 10**9, at % 10**9, len(frame), len(frame)) + frame
    (folder / f"{node}-eth0.pcap").write_bytes(header + record)
    (folder / "queues.bin").write_bytes(MAGIC + RECORD.pack(at, 0, 3) + b"abc")
    return Part(node, folder, clock_ns)


def test_machines_with_clocks_of_their_own_become_one_host(tmp_path: Path) -> None:
    parts = [machine(tmp_path, "s1", 0), machine(tmp_path, "r1", 7_000_001), machine(tmp_path, "d1", -1_500_000_000)]
    out = tmp_path / "out"
    out.mkdir()
    facts = merge(parts, out)
    assert facts["start_realtime_ns"] == 10**9
    assert set(facts["environment"]["nodes"]) == set(facts["realtime"]) == {"s1", "r1", "d1"}
    assert facts["capture_drops"] == {"s1-eth0": 0, "r1-eth0": 0, "d1-eth0": 0}
    for node in ("s1", "r1", "d1"):
        seconds, nanoseconds = struct.unpack_from("<II", (out / f"{node}-eth0.pcap").read_bytes(), 24)
        assert (seconds, nanoseconds) == (2, 0)

    data = (out / "queues.bin").read_bytes()[len(MAGIC) :]
    assert [RECORD.unpack_from(data, i * (RECORD.size + 3))[0] for i in range(3)] == [2 * 10**9] * 3


def test_a_machine_without_facts_is_named(tmp_path: Path) -> None:
    part = machine(tmp_path, "s1", 0)
    (part.folder / "guest.json").unlink()
    with pytest.raises(MergeError, match=r"s1: no guest\.json"):
        merge([part], tmp_path)
