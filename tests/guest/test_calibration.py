# SPDX-License-Identifier: Apache-2.0
"""Calibration: every shipped topology is as the file says, and what is built wrongly is caught."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import topologies
from analysis.calibration import NOT, OFF, OK, Row, judge
from base.paths import SENT_PACKAGES
from hosts.virtual import boot, launch
from hosts.virtual.host import VirtualHost
from hosts.virtual.launch import GuestKernel
from network.direction import Buffer, Direction
from network.link_words import direction
from network.model import Link, Network, Node
from network.tc import own_modules
from plan.console import MODULES
from plan.model import HostSettings, Module, Plan
from testbed.commands.calibrate import calibration_plan, measure
from testbed.experiments import prepare
from tests import lab

SMALL_ENOUGH = 60  # links

PARAMETERS: dict[str, dict[str, Any]] = {"transit_stub": {"nodes": 25}}
"""Of topologies whose defaults are too large to calibrate in a test."""


def plan_of(network: Network) -> Plan:
    hosts = {node.name: HostSettings() for node in network.nodes}
    modules = tuple(Module(f"{MODULES}/{name}.ko") for name in own_modules(network.directions()))
    plan = Plan(network=network, flows=(), duration_s=1.0, grace_s=1.0, start_grid_s=1, hosts=hosts, modules=modules)
    return calibration_plan(plan)


def off(rows: list[Row]) -> set[tuple[str, str]]:
    return {(row.link, row.quantity) for row in rows if row.verdict == OFF}


VARIANTS = [
    *((name, PARAMETERS.get(name, {})) for name in topologies.names()),
    ("satellite", {"orbit": "leo"}),
    ("satellite", {"returns": "terrestrial"}),
    ("wan", {"path": "nctu-ca"}),
]


@pytest.mark.parametrize(("name", "parameters"), VARIANTS)
def test_every_shipped_topology_is_as_its_parameters_say(
    kernel: GuestKernel, name: str, parameters: dict[str, Any]
) -> None:
    network = topologies.build(name, parameters)
    if len(network.links) > SMALL_ENOUGH:
        pytest.skip(f"{len(network.links)} links; PARAMETERS has no smaller form of {name}")
    plan = plan_of(network)
    rows = judge(plan, measure(VirtualHost(kernel), plan))
    assert [row for row in rows if row.verdict == OFF] == []
    assert all(row.note for row in rows if row.verdict == NOT)
    assert sum(row.verdict == OK for row in rows) > 5 * len(network.links)


# Unlike in both directions: a buffer in bytes, loss, no rate.
SHAPES = Network(
    (Node("a"), Node("r", "router"), Node("b")),
    (
        Link("a", "r", Direction(delay_ns=2_000_000), Direction(delay_ns=1_000_000)),
        Link(
            "r", "b",
            Direction(20_000_000, Buffer(60_000, "bytes"), 5_000_000, 0.02),
            Direction(5_000_000, Buffer(7, "packets"), 20_000_000),
        ),
    ),
)  # fmt: skip


@pytest.fixture(scope="module")
def shapes(kernel: GuestKernel) -> Mapping[str, Any]:
    return measure(VirtualHost(kernel), plan_of(SHAPES))


def changed(number: int, **changes: Any) -> Plan:
    """The plan whose link's forward direction asks for something else than what was built."""
    links = list(SHAPES.links)
    links[number] = dataclasses.replace(links[number], forward=dataclasses.replace(links[number].forward, **changes))
    return plan_of(dataclasses.replace(SHAPES, links=tuple(links)))


def test_rate_buffer_delay_and_loss_are_measured(shapes: Mapping[str, Any]) -> None:
    rows = {(row.link, row.quantity): row for row in judge(plan_of(SHAPES), shapes)}
    assert {row.verdict for row in rows.values()} == {OK, NOT}
    assert rows["r→b", "rate"].measured == pytest.approx(20e6, rel=1e-4)
    assert rows["b→r", "rate"].measured == pytest.approx(5e6, rel=1e-4)
    assert rows["r→b", "buffer"].measured == 39 * 1514 and rows["b→r", "buffer"].measured == 7
    assert rows["r→b", "burst"].measured == rows["b→r", "burst"].measured == 2
    assert rows["a→r", "RTT"].measured == pytest.approx(3_000_000, abs=1000)  # reading the clock takes some ns
    assert 0.01 < (rows["r→b", "loss"].measured or 0) < 0.03
    assert rows["a→r", "rate"].verdict == NOT and rows["a→r", "rate"].note == "the link has none"


@pytest.mark.parametrize(
    ("number", "changes", "quantity"),
    [
        (1, {"rate_bps": 20_050_000}, "rate"),
        (1, {"delay_ns": 5_012_000}, "RTT"),
        (1, {"loss": 0.03}, "loss"),
        (1, {"buffer": Buffer(61_000, "bytes")}, "buffer"),
        (0, {"delay_ns": 1_985_000}, "RTT"),
    ],
)
def test_what_differs_from_the_file_is_off(
    shapes: Mapping[str, Any], number: int, changes: dict[str, Any], quantity: str
) -> None:
    """A quarter of a per cent of rate, 12 µs of delay, 1 % of loss, a packet of buffer."""
    wrong = off(judge(changed(number, **changes), shapes))
    assert quantity in {what for _, what in wrong}
    assert {what for _, what in wrong} <= {quantity, "wire holds"}


OF_ALL_KINDS = (
    {"rate": "2mbit", "delay": "100ms", "buffer": "200p", "loss": "2%"},
    {"rate": "2mbit", "delay": "1ms", "buffer": "30KB", "loss": "20%"},
    {"rate": "500kbit", "delay": "9ms", "buffer": "60p", "loss": "gilbert-elliott p=5% r=30%"},
    {"rate": "steps 0s=10mbit 5s=2mbit repeat=9s", "delay": "5ms", "buffer": "40p"},
    {"rate": "synthetic mean=12mbit length=3s", "delay": "5ms", "buffer": "40p"},
    {"rate": "10mbit", "delay": "30ms jitter=3ms order=any", "buffer": "40p"},
    {"rate": "10mbit", "delay": "steps 0s=5ms 5s=9ms", "buffer": "40p", "loss": "bit-errors 1e-6"},
    {"rate": "10mbit", "delay": "5ms", "buffer": "40p", "queue": "red min=5p max=15p adaptive ecn"},
    {"rate": "10mbit", "delay": "5ms", "buffer": "40p", "queue": "fq_codel"},
    {"rate": "10mbit", "delay": "7785.626us", "buffer": "40p"},
)  # fmt: skip


def test_links_of_all_kinds_are_as_their_words_say(kernel: GuestKernel) -> None:
    """Slow links that lose packets, those that warp_rate paces, and managed queues: none is taken for wrongly built."""
    leaves = [f"n{number}" for number in range(len(OF_ALL_KINDS))]
    links = (
        Link("hub", leaf, direction(words), direction(words)) for leaf, words in zip(leaves, OF_ALL_KINDS, strict=True)
    )
    plan = plan_of(Network((Node("hub", "router"), *map(Node, leaves)), tuple(links)))
    rows = judge(plan, measure(VirtualHost(kernel), plan))
    assert [row for row in rows if row.verdict == OFF] == []
    rates = {row.link: row for row in rows if row.quantity == "rate"}
    measured = {link: row.measured for link, row in rates.items() if row.verdict == OK}
    assert measured == {link: pytest.approx(rates[link].asked, rel=1e-4) for link in measured}
    assert sorted(rates[link].asked or 0 for link in measured if "n1" not in link) == [5e5] * 2 + [2e6] * 2 + [1e7] * 4
    # of 20 packets a fifth is lost: now and then too few are left that follow one another
    short = {row.note for link, row in rates.items() if "n1" in link and link not in measured}
    assert short <= {"too few packets arrived to time them"}
    # parts of a microsecond add up over the hops of a large network
    assert rows[-1].link == f"{leaves[-1]}→hub"
    fine = [row.measured for row in rows if row.quantity == "RTT" and leaves[-1] in row.link]
    assert fine == [pytest.approx(2 * (7_785_626 + 78_400), abs=1000)] * 2
    held = [row for row in rows if row.quantity == "held by sender"]
    assert len(held) == 2 * len(OF_ALL_KINDS)


SABOTAGE = {
    "offloads left on": ("agent/mininet_build.py", "def disable_offloads(names):\n    pass\n", {"offloads on"}),
    "netem limit too small": (
        "network/tc.py",
        "def netem_limit(direction):\n    return 5\n",
        {"wire holds", "loss", "rate"},
    ),
    "a wrong burst": (
        "network/tc.py",
        """
        _honest = egress
        def egress(interface, direction):
            place = _honest(interface, direction)
            return Place(place.own, tuple(line.replace("burst 3028", "burst 30280") for line in place.lines))
        """,
        {"burst"},
    ),
    "delay on the sender": (
        "network/tc.py",
        """
        import dataclasses
        _honest = wire
        def wire(source, target, direction):
            return _honest(source, target, dataclasses.replace(direction, delay_ns=0))
        def egress(interface, direction, _honest=egress):
            if direction.rate_bps is None:
                return Place((), (f"qdisc add dev {interface} root netem limit 1000 delay {direction.delay_ns / 1000}us",))
            return _honest(interface, direction)
        """,
        {"held by sender"},
    ),
}


@pytest.mark.parametrize("what", SABOTAGE)
def test_a_network_that_is_built_wrongly_is_caught(
    kernel: GuestKernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """The guest runs a copy of the sources in which one thing is done wrongly."""
    file, code, quantities = SABOTAGE[what]
    for folder in SENT_PACKAGES:
        shutil.copytree(lab.ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    with open(tmp_path / file, "a") as out:
        out.write("\n\n" + textwrap.dedent(code))
    for module in (launch, boot):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    slow = Direction(20_000_000, Buffer(50, "packets"), 20_000_000)
    links = (
        Link("a", "r", Direction(delay_ns=2_000_000), Direction(delay_ns=2_000_000)),
        Link("r", "b", slow, slow),
    )
    plan = plan_of(Network(SHAPES.nodes, links))
    rows = judge(plan, measure(VirtualHost(kernel), plan))
    off_by = {quantity for _, quantity in off(rows)}
    assert off_by & quantities, rows
    if what != "netem limit too small":
        assert off_by <= quantities | {"RTT"}


def test_a_starved_cpu_is_caught() -> None:
    """Two busy processes on the CPU of one that runs only when nobody else wants to: its timers are late, which in real
    time makes a run invalid."""
    script = textwrap.dedent(
        """
        import json, os
        from agent.calibrate import timer_lateness_ns
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        late = timer_lateness_ns(5)
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        print(json.dumps(late))
        """
    )
    pinned = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
    hogs = [subprocess.Popen([*pinned, sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        done = subprocess.run(
            [*pinned, "/usr/bin/python3", "-c", script], capture_output=True, text=True, cwd=lab.ROOT, check=True
        )
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()

    def timers(late_ns: list[int]) -> Row:
        return judge(plan_of(SHAPES), {"realtime": True, "directions": [], "timer_late_ns": late_ns})[0]

    assert timers(json.loads(done.stdout)).verdict == OFF
    assert timers([60_000] * 200).verdict == OK


def test_a_run_carries_its_calibration_in_its_verdict(small: Path) -> None:
    (run,) = lab.runs(small)
    facts = json.loads((run["path"] / "raw/guest.json").read_text())["calibration"]
    assert run["facts"]["calibration"] == facts and len(facts["directions"]) == 6 and facts["left_out"] == 0
    plan = prepare(lab.write(run["path"].parent.parent, lab.SMALL, "again.yml")).plans[0]
    assert {row.verdict for row in judge(plan, facts)} == {OK, NOT}


def test_the_command_prints_a_table_and_json(kernel: GuestKernel, tmp_path: Path) -> None:
    file = lab.write(tmp_path, lab.SMALL)
    output = lab.warpbed("calibrate", file)
    assert "r1→r2  rate" in output and "20 Mbit/s" in output and ", 0 off, " in output
    rows = json.loads(lab.warpbed("calibrate", file, "--format", "json"))
    rate = next(row for row in rows if (row["link"], row["quantity"]) == ("r1→r2", "rate"))
    assert rate["asked"] == 20e6 and rate["verdict"] == OK and rate["unit"] == "bit/s"


def test_a_broken_file_is_refused(tmp_path: Path) -> None:
    output = lab.warpbed("calibrate", lab.write(tmp_path, lab.SMALL.replace("dumbbell", "dumbell")), code=2)
    assert "did you mean dumbbell?" in output


def test_a_policer_and_a_link_that_aggregates_are_measured_as_built(kernel: GuestKernel) -> None:
    """A bucket of 40 000 bytes lets 26 full frames pass; another rate or bucket, or a delay without aggregation, would be told apart."""
    words = {"rate": "8mbit", "delay": "5ms", "buffer": "40KB", "queue": "policer"}
    together = {"delay": "20ms aggregate=6ms"}

    def plan(policer: Mapping[str, str], wireless: Mapping[str, str]) -> Plan:
        links = (Link("a", "r", direction(policer), Direction()), Link("r", "b", direction(wireless), Direction()))
        return plan_of(Network((Node("a"), Node("r", "router"), Node("b")), links))

    measured = measure(VirtualHost(kernel), plan(words, together))
    rows = {(row.link, row.quantity): row for row in judge(plan(words, together), measured)}
    assert not [row for row in rows.values() if row.verdict == OFF]
    assert rows["a→r", "burst"].measured == 40_000 // 1514
    assert rows["a→r", "rate"].measured == pytest.approx(8e6, rel=0.002)
    assert rows["a→r", "buffer"].verdict == NOT and "its bucket is the burst" in rows["a→r", "buffer"].note
    assert off(judge(plan({**words, "rate": "8100kbit"}, together), measured)) == {("a→r", "rate")}
    assert off(judge(plan({**words, "buffer": "48KB"}, together), measured)) == {("a→r", "burst")}
    assert ("r→b", "RTT") in off(judge(plan(words, {"delay": "20ms"}), measured))
